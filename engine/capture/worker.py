"""What a vLLM worker does for row capture: install the taps, follow the requests, hand out rows.

Installed through `worker_cls` (`worker_cuda`, `worker_cpu`). The heads come in the engine's `additional_config`, a
`CaptureConfig`. The engine reaches the rest through `collective_rpc` by name, with plain values both ways, so one
process or several make no difference.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.core.sched.output import CachedRequestData, NewRequestData, SchedulerOutput
from vllm.v1.kv_cache_interface import FullAttentionSpec, SlidingWindowSpec
from vllm.version import __version__ as vllm_version

from engine.capture import check, compat, guard
from engine.capture.reader import Chunk
from engine.capture.settings import CaptureConfig
from engine.capture.slots import Group, Read, SlotBook, Tracked
from engine.capture.tap import LayerTap

_LAYER_NUMBER = re.compile(r"\.layers\.(\d+)\.")
_TOWERS = re.compile(r"vision|audio|visual|encoder")


class CaptureWorkerMixin:
    """Mixed in front of a vLLM worker class."""

    tap_class: ClassVar[type[LayerTap]]
    reader_class: ClassVar[Any]
    vllm_config: Any

    def initialize_from_config(self, kv_cache_config: Any) -> None:
        """The KV cache exists from here on, and no graph is captured yet."""
        super().initialize_from_config(kv_cache_config)  # type: ignore[misc]
        self._settings: CaptureConfig = self.vllm_config.additional_config
        self._expert = self._settings.allow_unvalidated
        guard.check_version(vllm_version, self._expert)
        guard.check_scheduler(SchedulerOutput, NewRequestData, CachedRequestData, vllm_version)
        guard.check_config(self.vllm_config, self._expert)
        self._groups = [_group(spec.kv_cache_spec) for spec in kv_cache_config.kv_cache_groups]
        self._group_of = {name: number for number, spec in enumerate(kv_cache_config.kv_cache_groups)
                          for name in spec.layer_names}  # fmt: skip
        self._taps = self._make_taps()
        self._watched = [tap for tap in self._taps if tap.heads]
        for tap in self._taps:
            tap.allocate()
            if tap.writes:
                tap.install()
        self._book = SlotBook(self._groups)
        self._reader = self.reader_class(self._watched) if self._watched else None
        self._found: dict[str, dict[str, float]] = {}

    def determine_available_memory(self) -> int:
        """Room for keys and values, less what the shadows will take of it."""
        available: int = super().determine_available_memory()  # type: ignore[misc]
        if self.vllm_config.cache_config.kv_cache_memory_bytes is not None:
            return available
        return int(available / (1 + self._shadow_share()))

    @torch.inference_mode()
    def execute_model(self, scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        """Read what this step would overwrite, then run it."""
        if self._watched:
            self._read(self._book.begin_step(scheduler_output))
        return super().execute_model(scheduler_output, *args, **kwargs)  # type: ignore[misc]

    # ------------------------------------------------------------ called by name through collective_rpc

    def capture_info(self) -> dict[str, Any]:
        """What is watched, and what it costs."""
        return {
            "vllm": vllm_version,
            "columns": self._columns(),
            "shared": sorted({column for tap in self._watched for column in tap.columns
                              if tap.layer.kv_sharing_target_layer_name}),
            "shadow_bytes": sum(tap.shadow_bytes for tap in self._taps),
            "backends": sorted({tap.layer.attn_backend.get_name() for tap in self._watched}),
            "counts": self._book.counts,
            "groups": [[group.block_size, group.window] for group in self._groups],
            "dtype": str(self._watched[0].queries.dtype).removeprefix("torch.") if self._watched else "",
            "runner": type(self.model_runner).__module__,  # type: ignore[attr-defined]
            "graphs": str(getattr(self.vllm_config.compilation_config.cudagraph_mode, "name", "")),
        }  # fmt: skip

    def take_rows(self, request_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Rows of these requests, as far as they ran: shape and float32 bytes, queries from `first_query` on."""
        if not self._watched:
            return {}
        self._read([read for name in request_ids if (read := self._book.read_now(name))])
        return {name: self._packed(name, tracked) for name in request_ids if (tracked := self._book.take(name))}

    def drop_rows(self, request_ids: Sequence[str]) -> None:
        """Forget these requests."""
        for name in request_ids:
            self._book.drop(name)
            self._found.pop(name, None)

    # ------------------------------------------------------------ inside

    def _make_taps(self) -> list[LayerTap]:
        layers = self._decoder_layers()
        wanted: dict[int, list[tuple[int, int]]] = {}
        for column, (at, head) in enumerate(self._settings.heads):
            wanted.setdefault(at, []).append((column, head))
        ranks = self.vllm_config.parallel_config.tensor_parallel_size
        rank = self.rank % ranks  # type: ignore[attr-defined]
        taps: dict[str, LayerTap] = {}
        for number, columns in sorted(wanted.items()):
            layer = layers.get(number)
            if layer is None:
                raise guard.CaptureError(f"Head ({number}, {columns[0][1]}): the model has layers 0 to {max(layers)}.")
            if beyond := [head for _, head in columns if not 0 <= head < layer.num_heads * ranks]:
                raise guard.CaptureError(
                    f"Head ({number}, {beyond[0]}): layer {number} has heads 0 to {layer.num_heads * ranks - 1}."
                )
            here = [(c, h - rank * layer.num_heads) for c, h in columns if h // layer.num_heads == rank]
            taps[layer.layer_name] = self._tap(layer, here)
        self._link_shared(taps)
        return list(taps.values())

    def _tap(self, layer: Any, heads: Sequence[tuple[int, int]]) -> LayerTap:
        guard.check_layer(layer, vllm_version, self._expert)
        owner = layer.kv_sharing_target_layer_name or layer.layer_name
        group = self._group_of[owner]
        return self.tap_class(layer, group, self._groups[group], [c for c, _ in heads], [h for _, h in heads])

    def _link_shared(self, taps: dict[str, LayerTap]) -> None:
        """Where keys are copied, a layer that computes none of its own reads those of the layer it shares with."""

    def _decoder_layers(self) -> dict[int, Any]:
        """Attention layers of the language model by number; towers of multimodal wrappers are left out."""
        layers: dict[int, Any] = {}
        for name, layer in self.vllm_config.compilation_config.static_forward_context.items():
            found = _LAYER_NUMBER.search(name)
            if found is None or _TOWERS.search(name) or not hasattr(layer, "impl"):
                continue
            if int(found[1]) in layers:
                raise guard.CaptureError(
                    f"The model has two attention layers numbered {found[1]}: it is not supported."
                )
            layers[int(found[1])] = layer
        if not layers:
            raise guard.CaptureError(
                "The model has no attention layers of the form 'layers.N', so no head can be watched."
            )
        return layers

    def _columns(self) -> list[int]:
        return [column for tap in self._watched for column in tap.columns]

    def _shadow_share(self) -> float:
        """Bytes of the shadows for each byte of the KV cache."""
        get_kv_cache_groups = compat.kv_cache_groups()
        specs = copy.deepcopy(self.get_kv_cache_spec())  # type: ignore[attr-defined]
        together = max(len(group.layer_names) for group in get_kv_cache_groups(self.vllm_config, specs))
        layers, share = self._decoder_layers(), 0.0
        for number, _ in self.vllm_config.additional_config.heads:
            if number in layers:
                share += 1 / layers[number].num_kv_heads / together  # queries and outputs against keys and values
        return share

    @torch.inference_mode()
    def _read(self, reads: Sequence[Read]) -> None:
        if not reads or self._reader is None:
            return
        for read, chunk in zip(reads, self._reader.read(reads), strict=True):
            read.tracked.chunks.append(chunk)
            if read.tracked.request.check:
                found = self._found.setdefault(read.request_id, {})
                for name, value in check.check_read(self._watched, read, chunk.values()).items():
                    found[name] = max(found.get(name, 0.0), value)

    def _packed(self, name: str, tracked: Tracked) -> dict[str, Any]:
        rows = join_chunks(
            tracked.request.first_query, tracked.chunks, len(self._columns()), tracked.request.source_tokens + 2
        )
        return {
            "columns": self._columns(),
            "shape": list(rows.shape),
            "rows": rows.tobytes(),
            "errors": self._found.pop(name, {}),
        }


def join_chunks(first: int, chunks: Sequence[Chunk], heads: int, columns: int) -> NDArray[np.float32]:
    """One array from `first` on; a query that no chunk covers is NaN, a later chunk wins over an earlier one."""
    parts = [(chunk.first, chunk.values()) for chunk in chunks]
    last = max((start + len(rows) for start, rows in parts), default=first)
    joined = np.full((last - first, heads, columns), np.nan, np.float32)
    for start, rows in parts:
        joined[start - first : start - first + len(rows)] = rows
    return joined


def _group(spec: Any) -> Group:
    """Block size and window of a KV-cache group; only sliding-window specs give blocks away early."""
    layers = getattr(spec, "kv_cache_specs", None)
    inner = next(iter(layers.values())) if layers else spec
    if not isinstance(inner, FullAttentionSpec | SlidingWindowSpec):
        raise guard.CaptureError(f"Rows cannot be captured from a model whose KV cache is a {type(inner).__name__}.")
    return Group(spec.block_size, inner.sliding_window if isinstance(inner, SlidingWindowSpec) else 0)
