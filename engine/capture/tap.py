"""The tap on one attention layer: it copies queries (and attention outputs) of the watched heads by KV-cache slot.

`impl.forward` of the layer's instance is wrapped after the KV cache exists and before graphs are captured. Nothing is
traced by the compiler: in piecewise graphs the wrapper runs as Python each step, in full graphs its one launch is
recorded. Keys and values need no copy where the paged cache can be read; on the CPU, whose cache is packed for its
instruction set, they are copied as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from engine.capture.copy import copy_by_slot
from engine.capture.slots import Group


class LayerTap:
    """One watched layer. `columns` places its heads in the engine's head list; `heads` are this rank's head numbers.

    Shadows: [slots, heads, head_dim], on the device and in the type of the KV cache.
    """

    def __init__(self, layer: Any, group: int, spec: Group, columns: Sequence[int], heads: Sequence[int]) -> None:
        self.layer, self.group, self.spec = layer, group, spec
        self.columns, self.heads = tuple(columns), tuple(heads)
        self.head_dim: int = layer.head_size
        self.window: int = layer.sliding_window or 0
        self.scale = float(layer.impl.scale)
        per_kv = layer.num_heads // layer.num_kv_heads
        self.kv_heads = tuple(head // per_kv for head in self.heads)
        self.queries: torch.Tensor
        self.outputs: torch.Tensor

    @property
    def cache(self) -> torch.Tensor:
        """The paged cache, [blocks, kv heads, block, 2 * head_dim]."""
        return self.layer.kv_cache

    @property
    def slots(self) -> int:
        return self.cache.shape[0] * self.cache.shape[2]

    @property
    def writes(self) -> bool:
        """Whether anything of this layer is copied here: a tensor-parallel rank may hold none of its watched heads."""
        return bool(self.heads)

    @property
    def shadow_bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in (self.queries, self.outputs))

    def allocate(self) -> None:
        shape = (self.slots, len(self.heads), self.head_dim)
        self.queries = torch.zeros(shape, dtype=self.cache.dtype, device=self.cache.device)
        self.outputs = torch.zeros_like(self.queries)

    def install(self) -> None:
        """Wrap `impl.forward` of this layer's instance."""
        original = self.layer.impl.forward

        def forward(layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, metadata: Any, **rest: Any) -> Any:
            result = original(layer, query, key, value, kv_cache, metadata, **rest)
            if metadata is not None:
                self.write(query, key, value, rest["output"], metadata.slot_mapping)
            return result

        self.layer.impl.forward = forward

    def write(self, query: Any, key: Any, value: Any, output: Any, slots: torch.Tensor) -> None:
        """Copy what a step computed. `query`, `output`: [tokens, heads, head_dim]; `slots`: [tokens or more]."""
        raise NotImplementedError

    def keys(self, slots: torch.Tensor, kv_head: int) -> torch.Tensor:
        """Keys as attended, [slots, head_dim]."""
        raise NotImplementedError

    def values(self, slots: torch.Tensor, kv_head: int) -> torch.Tensor:
        """Values as attended, [slots, head_dim]."""
        raise NotImplementedError


class CpuTap(LayerTap):
    """Index copies. A layer that shares another's K and V reads the shadows of that layer's tap (`source`)."""

    source: CpuTap | None = None

    @property
    def writes(self) -> bool:
        return bool(self.heads) or self.source is None

    def allocate(self) -> None:
        super().allocate()
        self._select = torch.tensor(self.heads, dtype=torch.int64)
        if self.source is None:
            shape = (self.slots, self.layer.num_kv_heads, self.head_dim)
            self._keys = torch.zeros(shape, dtype=self.queries.dtype)
            self._values = torch.zeros_like(self._keys)

    def write(self, query: Any, key: Any, value: Any, output: Any, slots: torch.Tensor) -> None:
        if self.heads:
            copy_by_slot(query[:, self._select], slots, self.queries)
            copy_by_slot(output.view(query.shape)[:, self._select], slots, self.outputs)
        if self.source is None:
            copy_by_slot(key, slots, self._keys)
            copy_by_slot(value, slots, self._values)

    def keys(self, slots: torch.Tensor, kv_head: int) -> torch.Tensor:
        return (self.source or self)._keys[slots, kv_head]

    def values(self, slots: torch.Tensor, kv_head: int) -> torch.Tensor:
        return (self.source or self)._values[slots, kv_head]


class CudaTap(LayerTap):
    """One small Triton launch a layer; keys and values come from the paged cache."""

    def allocate(self) -> None:
        super().allocate()
        self._select = torch.tensor(self.heads, dtype=torch.int32, device=self.queries.device)

    def write(self, query: Any, key: Any, value: Any, output: Any, slots: torch.Tensor) -> None:
        from engine.capture.kernels import copy_heads

        copy_heads(query, output, slots, self._select, self.queries, self.outputs)

    def _cells(self, slots: torch.Tensor, kv_head: int) -> torch.Tensor:
        block = self.cache.shape[2]
        return self.cache[slots // block, kv_head, slots % block]

    def keys(self, slots: torch.Tensor, kv_head: int) -> torch.Tensor:
        return self._cells(slots, kv_head)[:, : self.head_dim]

    def values(self, slots: torch.Tensor, kv_head: int) -> torch.Tensor:
        return self._cells(slots, kv_head)[:, self.head_dim : 2 * self.head_dim]
