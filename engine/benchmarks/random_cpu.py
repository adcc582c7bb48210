"""vLLM's CPU workers with random weights, with and without capture."""

from __future__ import annotations

from vllm.v1.worker.cpu_worker import CPUWorker

from engine.benchmarks.random_weights import register_with_vllm
from engine.capture.worker_cpu import CpuCaptureWorker

register_with_vllm()


class Captured(CpuCaptureWorker):
    """With capture."""


class Plain(CPUWorker):
    """Without."""
