"""Workers of vLLM's CUDA engine, with and without capture."""

from __future__ import annotations

from vllm.v1.worker.gpu_worker import Worker

from engine.capture.lifeline import Lifeline
from engine.capture.reader import CudaReader
from engine.capture.tap import CudaTap
from engine.capture.worker import CaptureWorkerMixin


class PlainCudaWorker(Lifeline, Worker):
    """Without capture."""


class CudaCaptureWorker(CaptureWorkerMixin, PlainCudaWorker):
    """Triton launches; keys and values stay in the paged cache."""

    tap_class = CudaTap
    reader_class = CudaReader
