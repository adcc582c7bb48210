"""What the tap relies on inside vLLM, checked by name when an engine starts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

VALIDATED = {
    "0.26.0": "CUDA, TRITON_ATTN",
    "0.32.0": "CPU, CPU_ATTN",
}
VALIDATED_BACKENDS = ("TRITON_ATTN", "CPU_ATTN")
_FORWARD = ("layer", "query", "key", "value", "kv_cache", "attn_metadata", "output")
_LAYER = ("impl", "kv_cache", "num_heads", "num_kv_heads", "head_size", "sliding_window", "layer_name",
          "kv_sharing_target_layer_name", "kv_cache_dtype")  # fmt: skip
_SCHEDULED = ("scheduled_new_reqs", "scheduled_cached_reqs", "num_scheduled_tokens", "finished_req_ids",
              "preempted_req_ids")  # fmt: skip
_NEW = ("req_id", "block_ids", "num_computed_tokens", "sampling_params", "prompt_token_ids")
_CACHED = ("req_ids", "resumed_req_ids", "new_block_ids", "num_computed_tokens")


class CaptureError(Exception):
    """Rows cannot be captured here; the message is one sentence."""


class MemoryShort(CaptureError):
    """The engine needs more GPU memory than there is; `free_gib` says how much there is."""

    def __init__(self, message: str, free_gib: float) -> None:
        super().__init__(message)
        self.free_gib = free_gib


def versions() -> str:
    return ", ".join(f"{version} ({where})" for version, where in VALIDATED.items())


def check_version(version: str, allow_unvalidated: bool) -> None:
    """Raises `CaptureError` for a vLLM that the tap was not validated with, unless the expert flag is set."""
    base = version.split("+")[0]
    if base not in VALIDATED and not allow_unvalidated:
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
    backend = layer.attn_backend.get_name()
    if backend not in VALIDATED_BACKENDS and not allow_unvalidated:
        raise CaptureError(
            f"Rows are not validated with the attention backend {backend}; "
            f"start the engine with {' or '.join(VALIDATED_BACKENDS)}."
        )
    if "fp8" in layer.kv_cache_dtype or "int" in layer.kv_cache_dtype or "nvfp4" in layer.kv_cache_dtype:
        raise CaptureError(
            f"Rows cannot be read from a quantised KV cache ({layer.kv_cache_dtype}); set kv_cache_dtype to 'auto'."
        )
    if getattr(layer.impl, "logits_soft_cap", 0) or getattr(layer, "has_sink", False):
        raise CaptureError("Rows are not reconstructed for attention with a soft cap on its logits or with sinks.")


def check_config(config: Any, version: str) -> None:
    """Refuse what would make rows wrong in silence. Raises `CaptureError`."""
    if config.speculative_config is not None:
        raise CaptureError("Rows cannot be captured with speculative decoding: switch it off for the translator.")
    parallel = config.parallel_config
    for name in ("pipeline_parallel_size", "decode_context_parallel_size", "prefill_context_parallel_size"):
        if getattr(parallel, name, 1) > 1:
            raise CaptureError(f"Rows cannot be captured with {name} {getattr(parallel, name)}: set it to 1.")
    if config.model_config.use_mla:
        raise CaptureError("Rows cannot be captured from models with latent attention (MLA).")
