"""How many threads a decode runs on: as many as are given while they are faster than one, else one.

llama.cpp's threads wait for one another some 800 times a token. Beside other work on the same cores that waiting makes
two threads several times slower than one; alone they are half as fast again. Which it is shows only in the time taken.
"""

from __future__ import annotations

_WEIGHT = 0.3  # of the newest time in the average
PROBE_EVERY = 32  # decodes between two tries of what is slower at present


class ThreadChoice:
    """Averages of the time of a decode of one token on one thread and on `most`; the faster is chosen."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._average_s: dict[int, float] = {}
        self._since_probe = 0

    def choose(self) -> int:
        """Threads for the next decode."""
        if self._most == 1 or self._most not in self._average_s:
            return self._most
        if 1 not in self._average_s:
            return 1
        faster = min(self._average_s, key=lambda threads: self._average_s[threads])
        if self._since_probe < PROBE_EVERY:
            return faster
        return 1 if faster == self._most else self._most

    def note(self, threads: int, seconds: float) -> None:
        """A decode of one token on so many threads took so long."""
        faster = min(self._average_s, key=lambda number: self._average_s[number], default=threads)
        self._since_probe = self._since_probe + 1 if threads == faster else 0
        # A try says what holds now; what it replaces is old.
        before = self._average_s.get(threads, seconds) if threads == faster else seconds
        self._average_s[threads] = before + _WEIGHT * (seconds - before)
