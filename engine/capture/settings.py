"""What an engine with capture is started with, and the arguments that vLLM gets for it.

This is the only place in the project that chooses between eager and graphs for an engine whose rows are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.capture.compat import plain_attributes
from engine.capture.guard import CaptureError
from engine.capture.modes import (
    COMPILED,
    DEFAULT_CUDAGRAPH_MODE,
    DEFAULT_ENFORCE_EAGER,
    EAGER,
    GRAPH_MODES,
    NO_CAPTURE,
    plan,
)

GIB = 1 << 30
WORKERS = {
    "cpu": "engine.capture.worker_cpu.CpuCaptureWorker",
    "cuda": "engine.capture.worker_cuda.CudaCaptureWorker",
}
PLAIN_WORKERS = {
    "cpu": "engine.capture.worker_cpu.PlainCpuWorker",
    "cuda": "engine.capture.worker_cuda.PlainCudaWorker",
}
_OF_THE_MODE = ("enforce_eager", "compilation_config")
BACKENDS = {"cpu": "CPU_ATTN", "cuda": "TRITON_ATTN"}
# One scale for each output channel: Gemma 4's layers without keys of their own leave part of a weight unset, which
# must not reach the scale of the rest.
NO_QUANTIZATION = "none"
QUANTIZATIONS = (NO_QUANTIZATION, "fp8_per_channel")
# Decode batches, and the short prefills that are left when the prefix cache holds the rest of the prompt.
GRAPH_SIZES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256)


@dataclass(frozen=True, slots=True)
class CaptureConfig:
    """What a worker must know, as vLLM's `additional_config`. `cause_file`: where it notes why it cannot start."""

    heads: tuple[tuple[int, int], ...]
    allow_unvalidated: bool
    cause_file: str = ""

    def compute_hash(self) -> str:
        """The same for all: the tap is outside of compiled code, so other heads, or none, share its cache."""
        return "surtitle"


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """One engine. `heads`: (layer, head) in the order that rows come in; without heads, or `capture`, no rows.

    `role`: what the engine is for, as sentences name it. `memory_gib`: GPU memory of the whole engine, 0 for vLLM's own
    share of the device; `kv_cache_gib`: of that, keys and values, 0 for what vLLM finds to be left when it starts.
    `check_every`: one request in so many is checked as it runs.
    `quantization`: how vLLM makes weights smaller as it loads them (`QUANTIZATIONS`); "none" leaves them as they are
    in the folder. `vllm`: further arguments of vLLM's `EngineArgs`.
    """

    model: str
    heads: tuple[tuple[int, int], ...] = ()
    max_model_len: int = 4096
    max_num_seqs: int = 8
    dtype: str = "auto"
    enforce_eager: bool = DEFAULT_ENFORCE_EAGER
    cudagraph_mode: str = DEFAULT_CUDAGRAPH_MODE
    memory_gib: float = 0.0
    kv_cache_gib: float = 0.0
    tensor_parallel: int = 1
    own_process: bool = False
    capture: bool = True
    allow_unvalidated_vllm: bool = False
    check_every: int = 500
    role: str = "translator"
    quantization: str = NO_QUANTIZATION
    vllm: Mapping[str, Any] = field(default_factory=dict)

    def plan(self, cpu: bool) -> tuple[str, ...]:
        """Modes to try, best first."""
        return plan(self.enforce_eager, self.cudagraph_mode, cpu) if self.heads and self.capture else (NO_CAPTURE,)

    def arguments(self, mode: str, device: str, total_gib: float, cause_file: str = "") -> dict[str, Any]:
        """Arguments of `EngineArgs` for one mode on "cpu" or "cuda" with so much memory.

        Raises `CaptureError` where further arguments would make an engine with rows run in another mode than `mode`.
        """
        if mode != NO_CAPTURE and (taken := [name for name in _OF_THE_MODE if name in self.vllm]):
            raise CaptureError(
                f"vLLM's {taken[0]} follows from mt_vllm_enforce_eager and mt_vllm_cudagraph_mode: set these instead."
            )
        arguments: dict[str, Any] = {
            "model": self.model,
            "dtype": self.dtype,
            "max_model_len": self.max_model_len,
            "max_num_seqs": self.max_num_seqs,
            "tensor_parallel_size": self.tensor_parallel,
            "seed": 0,
            "skip_tokenizer_init": True,
            "language_model_only": bool(self.heads),  # a translator needs no tower of a multimodal checkpoint
            "generation_config": "vllm",
            "disable_log_stats": True,
            "enable_prefix_caching": True,
            "attention_backend": BACKENDS[device],
            "additional_config": CaptureConfig(self.heads, self.allow_unvalidated_vllm, cause_file),
            "hf_overrides": plain_attributes,
            **self._graphs(mode, device),
            **self._memory(total_gib),
            **self.vllm,
        }
        if self.quantization != NO_QUANTIZATION:
            arguments["quantization"] = self.quantization
        arguments.setdefault("worker_cls", (PLAIN_WORKERS if mode == NO_CAPTURE else WORKERS)[device])
        return arguments

    def _graphs(self, mode: str, device: str) -> dict[str, Any]:
        if mode == NO_CAPTURE:
            mode = EAGER if self.enforce_eager or self.cudagraph_mode == "NONE" else self.cudagraph_mode
        if mode == EAGER:
            return {"enforce_eager": True}
        assert mode == COMPILED or mode in GRAPH_MODES, mode
        graphs: dict[str, Any] = {}
        if device != "cpu":
            graphs = {"cudagraph_mode": mode, "cudagraph_capture_sizes": list(GRAPH_SIZES)}
            graphs["pass_config"] = {"fuse_attn_quant": False}  # attention outputs stay in the type that the tap copies
        return {"enforce_eager": False, "compilation_config": graphs}

    def _memory(self, total_gib: float) -> dict[str, Any]:
        # An engine that is told the size of its keys and values measures nothing as it starts, so others may start or
        # work on the same GPU. The share is then only what vLLM wants to see free (0.92 of the device without one).
        arguments: dict[str, Any] = {}
        if self.kv_cache_gib:
            arguments["kv_cache_memory_bytes"] = int(self.kv_cache_gib * GIB)
        if wanted := self.memory_gib or self.kv_cache_gib:
            arguments["gpu_memory_utilization"] = min(1.0, wanted / total_gib)
        return arguments
