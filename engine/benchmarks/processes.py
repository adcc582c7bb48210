"""CPU time and memory of a program and everything it started, sampled from outside."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import psutil

SAMPLE_S = 0.5


@dataclass(slots=True)
class Usage:
    """One process. CPU seconds so far. `peak_mib`: resident memory without shared pages counted twice (proportional set
    size) where the system tells, else the resident set. `own_mib`: samples of the memory that is its own and no file's
    (weights that are mapped from a file count to whoever else maps them), from which growth is told."""

    name: str
    cpu_s: float = 0.0
    peak_mib: float = 0.0
    own_mib: list[float] = field(default_factory=list)


def drift_mib(samples: Sequence[float]) -> float | None:
    """How much memory grew: the median of the last fifth of the samples over that of the second fifth, which comes
    after models are loaded and caches are warm. None for fewer than 20 samples."""
    if len(samples) < 20:
        return None
    fifth = len(samples) // 5
    return round(median(samples[-fifth:]) - median(samples[fifth : 2 * fifth]), 1)


class Sampler:
    """Samples a process tree on a thread of its own until `stop`, every `SAMPLE_S` or `every_s`: a look at a process
    holds up its changes of memory for as long as it has much of it."""

    def __init__(self, pid: int, every_s: float | None = None) -> None:
        self._root, self._every_s = psutil.Process(pid), every_s or SAMPLE_S
        self._done = threading.Event()
        self.usage: dict[int, Usage] = {}
        self.peak_total_mib = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the sampling."""
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(self._every_s):
            try:
                tree = [self._root, *self._root.children(recursive=True)]
            except psutil.Error:
                return
            total = sum(self._sample(process) for process in tree)
            self.peak_total_mib = max(self.peak_total_mib, total)

    def _sample(self, process: psutil.Process) -> float:
        try:
            times, mib = process.cpu_times(), _memory_mib(process)
            usage = self.usage.setdefault(process.pid, Usage(""))
            usage.name = _role(process) or usage.name  # some name themselves only when they have begun
        except psutil.Error:
            return 0.0  # it ended between two looks
        usage.cpu_s = times.user + times.system
        usage.peak_mib = max(usage.peak_mib, mib)
        usage.own_mib.append(_anonymous_mib(process, mib))
        return mib


def _memory_mib(process: psutil.Process) -> float:
    try:
        return float(process.memory_full_info().pss) / 2**20
    except (AttributeError, psutil.AccessDenied):
        return float(process.memory_info().rss) / 2**20


def _anonymous_mib(process: psutil.Process, otherwise: float) -> float:
    """Anonymous resident memory where the system tells (Linux), else the figure given."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon:"))
    except (OSError, StopIteration):
        return otherwise


def _role(process: psutil.Process) -> str:
    """What a process is, by its command line; "" of one that ends."""
    line = " ".join(process.cmdline())
    if "resource_tracker" in line:
        return "resource tracker"
    if line.startswith("VLLM::"):
        return line.split()[0].removeprefix("VLLM::")  # vLLM's engine cores and workers
    return "engine" if "spawn_main" in line else "app" if line else ""
