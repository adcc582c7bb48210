"""Workers of vLLM's CPU engine, with and without capture."""

from __future__ import annotations

from vllm.v1.worker.cpu_worker import CPUWorker

from engine.capture.lifeline import Lifeline
from engine.capture.reader import CpuReader
from engine.capture.tap import CpuTap, LayerTap
from engine.capture.worker import CaptureWorkerMixin


class PlainCpuWorker(Lifeline, CPUWorker):
    """Without capture."""


class CpuCaptureWorker(CaptureWorkerMixin, PlainCpuWorker):
    """Index copies of queries, outputs, keys and values."""

    tap_class = CpuTap
    reader_class = CpuReader

    def _link_shared(self, taps: dict[str, LayerTap]) -> None:
        context = self.vllm_config.compilation_config.static_forward_context
        for tap in list(taps.values()):
            target = tap.layer.kv_sharing_target_layer_name
            if target and isinstance(tap, CpuTap):
                if target not in taps:
                    taps[target] = self._tap(context[target], [])
                source = taps[target]
                assert isinstance(source, CpuTap)
                tap.source = source
