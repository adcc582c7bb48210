"""The capture worker of vLLM's CUDA engine."""

from __future__ import annotations

from vllm.v1.worker.gpu_worker import Worker

from engine.capture.reader import CudaReader
from engine.capture.tap import CudaTap
from engine.capture.worker import CaptureWorkerMixin


class CudaCaptureWorker(CaptureWorkerMixin, Worker):
    """Triton launches; keys and values stay in the paged cache."""

    tap_class = CudaTap
    reader_class = CudaReader
