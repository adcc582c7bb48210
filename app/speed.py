"""How fast a preset ran on this machine, measured while a session runs."""

from __future__ import annotations

import logging
from collections.abc import Callable

import psutil

from app.controller import Recorded, SessionBegan, SessionEnded
from app.settings import Speed
from engine.messages import Activity

log = logging.getLogger(__name__)

LEAST_S = 20.0  # a shorter session says little


class SpeedMeter:
    """Recorder: CPU time of the engine's processes against the session's audio, and the lag while somebody speaks."""

    def __init__(self, pid: Callable[[], int | None], keep: Callable[[str, Speed], None]) -> None:
        """`pid` of the running engine; `keep(preset, speed)` is told at the end of a session that was long enough."""
        self._pid, self._keep = pid, keep
        self._preset = ""
        self._cpu_s: float | None = None
        self._lag_sum, self._lags = 0.0, 0

    def event(self, event: Recorded) -> None:
        match event:
            case SessionBegan():
                self._preset, self._cpu_s = event.preset, cpu_seconds(self._pid())
                self._lag_sum, self._lags = 0.0, 0
            case Activity() if event.speech and event.lag_s >= 0:
                self._lag_sum += event.lag_s
                self._lags += 1
            case SessionEnded():
                self._measure(event)

    def _measure(self, ended: SessionEnded) -> None:
        began_s, now_s = self._cpu_s, cpu_seconds(self._pid())
        if ended.reason or ended.audio_s < LEAST_S or began_s is None or now_s is None or not self._lags:
            return
        factor = max(0.0, now_s - began_s) / ended.audio_s
        self._keep(self._preset, Speed(real_time_factor=round(factor, 3), lag_s=round(self._lag_sum / self._lags, 2)))


def cpu_seconds(pid: int | None) -> float | None:
    """CPU time of a process and all it has started; None when it is gone."""
    if pid is None:
        return None
    try:
        process = psutil.Process(pid)
        total = 0.0
        for member in (process, *process.children(recursive=True)):
            times = member.cpu_times()
            total += times.user + times.system
        return total
    except psutil.Error:
        return None
