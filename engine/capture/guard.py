"""What the tap relies on inside vLLM, checked by name when an engine starts."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import Any

logger = logging.getLogger("surtitle.capture")

VALIDATED = {
    "0.26.0": "CUDA, TRITON_ATTN",
    "0.32.0": "CPU, CPU_ATTN",
}
# Every name below was found in its sources; no engine of it was run. The self-test decides there as everywhere.
READ = {"0.33.0": "CUDA, by its sources"}
VALIDATED_BACKENDS = ("TRITON_ATTN", "CPU_ATTN")
PLAIN_KV_TYPES = ("auto", "float16", "bfloat16", "float32")
_FORWARD = ("layer", "query", "key", "value", "kv_cache", "attn_metadata", "output")
_LAYER = ("impl", "kv_cache", "num_heads", "num_kv_heads", "head_size", "sliding_window", "layer_name",
          "kv_sharing_target_layer_name", "kv_cache_dtype")  # fmt: skip
_SCHEDULED = ("scheduled_new_reqs", "scheduled_cached_reqs", "num_scheduled_tokens", "finished_req_ids",
              "preempted_req_ids")  # fmt: skip
_NEW = ("req_id", "block_ids", "num_computed_tokens", "sampling_params", "prompt_token_ids")
_CACHED = ("req_ids", "resumed_req_ids", "new_block_ids", "num_computed_tokens")


class CaptureError(Exception):
    """Rows cannot be captured here; the message is one sentence."""


class GraphsFailed(CaptureError):
    """The model was loaded, but what makes it fast could not be made of it: another mode may still run."""


class MemoryShort(CaptureError):
    """The engine needs more GPU memory than there is; `free_gib` says how much there is."""

    def __init__(self, message: str, free_gib: float) -> None:
        super().__init__(message)
        self.free_gib = free_gib


def versions() -> str:
    return ", ".join(f"{version} ({where})" for version, where in {**VALIDATED, **READ}.items())


def check_version(version: str, allow_unvalidated: bool) -> None:
    """Raises `CaptureError` for a vLLM that the tap was not validated with, unless the expert flag is set."""
    base = version.split("+")[0]
    if base in READ:
        logger.warning("vLLM %s was never run with row capture, only read: its self-test decides.", version)
    elif base not in VALIDATED and not allow_unvalidated:
        raise CaptureError(
            f"vLLM {version} is not validated for row capture (validated: {versions()}); "
            "install one of these, or set allow_unvalidated_vllm to go on at your own risk."
        )


def check_names(owner: str, present: Callable[[str], bool], names: tuple[str, ...], version: str) -> None:
    """Raises `CaptureError` naming the first attribute that is missing."""
    for name in names:
        if not present(name):
            raise CaptureError(
                f"vLLM {version} lacks {owner}.{name}, which row capture reads (validated: {versions()})."
            )


def check_scheduler(scheduler_output: type, new_request: type, cached_requests: type, version: str) -> None:
    """Check the classes that tell a worker what a step runs."""
    for owner, names in ((scheduler_output, _SCHEDULED), (new_request, _NEW), (cached_requests, _CACHED)):
        fields = getattr(owner, "__dataclass_fields__", {})
        check_names(owner.__name__, fields.__contains__, names, version)


def check_layer(layer: Any, version: str, allow_unvalidated: bool) -> None:
    """Check one attention layer: its attributes, the signature of `impl.forward`, its backend and KV-cache type."""
    check_names("Attention", lambda name: hasattr(layer, name), _LAYER, version)
    parameters = inspect.signature(layer.impl.forward).parameters
    check_names("AttentionImpl.forward", parameters.__contains__, _FORWARD, version)
    _check_backend(layer.attn_backend.get_name(), allow_unvalidated)
    _check_kv_type(layer.kv_cache_dtype)
    if getattr(layer.impl, "logits_soft_cap", 0) or getattr(layer, "has_sink", False):
        raise CaptureError("Rows are not reconstructed for attention with a soft cap on its logits or with sinks.")


def check_config(config: Any, allow_unvalidated: bool) -> None:
    """Refuse what would make rows wrong in silence. Raises `CaptureError`.

    Asked before an engine is built, in the process that asks for it: a worker would say it only when its weights are
    loaded.
    """
    if config.speculative_config is not None:
        raise CaptureError("Rows cannot be captured with speculative decoding: switch it off for the translator.")
    parallel = config.parallel_config
    for name in ("pipeline_parallel_size", "decode_context_parallel_size", "prefill_context_parallel_size"):
        if getattr(parallel, name, 1) > 1:
            raise CaptureError(f"Rows cannot be captured with {name} {getattr(parallel, name)}: set it to 1.")
    if config.model_config.use_mla:
        raise CaptureError("Rows cannot be captured from models with latent attention (MLA).")
    if backend := config.attention_config.backend:  # None: vLLM chooses one for each layer
        _check_backend(backend.name, allow_unvalidated)
    _check_kv_type(str(config.cache_config.cache_dtype))


def check_heads(heads: Sequence[Sequence[int]], layers: int, query_heads: int) -> None:
    """Refuse (layer, head)s that the model does not have. Raises `CaptureError`."""
    for layer, head in heads:
        if not 0 <= layer < layers:
            raise CaptureError(f"Head ({layer}, {head}): the model has layers 0 to {layers - 1}.")
        if not 0 <= head < query_heads:
            raise CaptureError(f"Head ({layer}, {head}): layer {layer} has heads 0 to {query_heads - 1}.")


def _check_backend(name: str, allow_unvalidated: bool) -> None:
    if name not in VALIDATED_BACKENDS and not allow_unvalidated:
        raise CaptureError(
            f"Rows are not validated with the attention backend {name}; "
            f"start the engine with {' or '.join(VALIDATED_BACKENDS)}."
        )


def _check_kv_type(name: str) -> None:
    if name not in PLAIN_KV_TYPES:
        raise CaptureError(f"Rows cannot be read from a quantised KV cache ({name}); set kv_cache_dtype to 'auto'.")
