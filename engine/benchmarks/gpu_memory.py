"""Memory of this machine's GPUs, as NVIDIA's management library counts it: all processes together."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

GIB = 2**30
SAMPLE_S = 0.1


class GpuMemory:
    """Samples used memory on a thread of its own, from `open` to `close`. GiB, summed over the GPUs.

    `idle_gib`: used when it was opened, by whatever else runs; `peak_gib`: the most since then.
    """

    def __init__(self, nvml: Any) -> None:
        """`nvml`: the module `pynvml`, initialised. Raises its `NVMLError`."""
        self._nvml = nvml
        self._handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        self.idle_gib = self.peak_gib = self.used_gib()
        self.peak_by_pid: dict[int, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpu memory", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls) -> GpuMemory | None:
        """None where there is no NVIDIA GPU, or no driver."""
        try:
            import pynvml
        except ImportError:
            return None
        try:
            pynvml.nvmlInit()
            return cls(pynvml) if pynvml.nvmlDeviceGetCount() else None
        except pynvml.NVMLError:
            return None

    def used_gib(self) -> float:
        """Used now, by all processes."""
        return sum(self._nvml.nvmlDeviceGetMemoryInfo(handle).used for handle in self._handles) / GIB

    def holders(self) -> dict[int, float]:
        """GiB by process, of those that this machine shows (a container may hide them)."""
        found: dict[int, float] = {}
        for handle in self._handles:
            for process in self._nvml.nvmlDeviceGetComputeRunningProcesses(handle):
                found[process.pid] = found.get(process.pid, 0.0) + (process.usedGpuMemory or 0) / GIB
        return found

    def peak_of(self, pids: Collection[int]) -> dict[int, float]:
        """The most that each of these processes held, of those that are shown."""
        return {pid: round(gib, 2) for pid, gib in self.peak_by_pid.items() if pid in pids}

    def device(self) -> dict[str, Any]:
        """Names of the GPUs, their memory, and the driver."""
        names = [self._nvml.nvmlDeviceGetName(handle) for handle in self._handles]
        total = sum(self._nvml.nvmlDeviceGetMemoryInfo(handle).total for handle in self._handles) / GIB
        return {
            "gpus": [name.decode() if isinstance(name, bytes) else str(name) for name in names],
            "total_gib": round(total, 1),
            "driver": str(self._nvml.nvmlSystemGetDriverVersion()),
        }

    def close(self) -> None:
        """End the sampling."""
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(SAMPLE_S):
            try:
                self.peak_gib = max(self.peak_gib, self.used_gib())
                for pid, gib in self.holders().items():
                    self.peak_by_pid[pid] = max(self.peak_by_pid.get(pid, 0.0), gib)
            except self._nvml.NVMLError:
                continue  # one sample less
