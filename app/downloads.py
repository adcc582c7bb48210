"""Downloads of weights as the engine reports them, without Qt: how far, how fast, how long still."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from app.observe import Notifier
from engine.messages import DownloadProgress

SMOOTHING = 0.2  # weight of the newest speed
OVER = ("done", "cancelled", "failed")


@dataclass(frozen=True, slots=True)
class Download:
    """One download. `speed` in bytes a second, None before it is known."""

    name: str
    done_bytes: int
    total_bytes: int
    state: str
    speed: float | None = None

    @property
    def fraction(self) -> float | None:
        """In [0, 1]; None while the size is not known."""
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes > 0 else None

    @property
    def left_s(self) -> float | None:
        """Seconds still to go; None when nobody can say."""
        if self.state != "running" or not self.speed or self.total_bytes <= 0:
            return None
        return max(0, self.total_bytes - self.done_bytes) / self.speed


class Downloads:
    """Every download of this engine, by name. `changed` carries the one that moved."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.changed: Notifier[Download] = Notifier()
        self.rows: dict[str, Download] = {}
        self._clock = clock
        self._at_s: dict[str, float] = {}

    def report(self, event: DownloadProgress) -> None:
        """What the engine says."""
        now_s, old = self._clock(), self.rows.get(event.name)
        done, total = max(0, event.done_bytes), max(0, event.total_bytes)
        row = Download(event.name, done, total, event.state, old.speed if old else None)
        if old is not None and old.state == row.state == "running":
            since_s = now_s - self._at_s[event.name]
            if since_s > 0 and row.done_bytes >= old.done_bytes:
                newest = (row.done_bytes - old.done_bytes) / since_s
                known = newest if old.speed is None else old.speed + SMOOTHING * (newest - old.speed)
                row = replace(row, speed=known)
        self._at_s[event.name] = now_s
        self.rows[event.name] = row
        self.changed.emit(row)

    @property
    def active(self) -> list[Download]:
        """Those that run or are paused."""
        return [row for row in self.rows.values() if row.state not in OVER]
