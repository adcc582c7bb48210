"""The clock of a live session: steady, and going on while the machine sleeps, where the system has such a clock."""

from __future__ import annotations

import time

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


def now_s() -> float:
    """Seconds from some point in the past; the time of a suspend counts."""
    return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
