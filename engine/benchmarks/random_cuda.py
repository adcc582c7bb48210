"""vLLM's CUDA workers with random weights, with and without capture."""

from __future__ import annotations

from vllm.v1.worker.gpu_worker import Worker

from engine.benchmarks.random_weights import register_with_vllm
from engine.capture.worker_cuda import CudaCaptureWorker

register_with_vllm()


class Captured(CudaCaptureWorker):
    """With capture."""


class Plain(Worker):
    """Without."""
