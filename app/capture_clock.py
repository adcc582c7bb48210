"""The session clock of a live source: it counts samples, and notices when some never came."""

from __future__ import annotations

from dataclasses import dataclass

LATE_S = 0.2  # further behind than this is more than jitter …
LATE_FOR_S = 0.5  # … and when nothing catches up for so long, the audio is lost and not just delayed
SUSPECT_LATE_S = 0.03  # where the sound system has said that it lost something, less is enough …
SUSPECT_FOR_S = 2.0  # … for this long
TRACKING = 0.002  # per block: follows a device whose rate is not quite what it says (some 100 ppm)


@dataclass(slots=True)
class CaptureClock:
    """Gives each block its start on the session clock; 0.0 is the first sample.

    Sample count and a monotonic clock are compared: a lasting step between them is a gap of lost audio and
    moves the clock ahead; jitter, a burst after a stall and slow drift are not. `origin_s`: the monotonic time of
    session time 0 when the session has begun already (another device was lost): the first block then gets its place.
    """

    sample_rate: int
    origin_s: float | None = None
    _frames: int = 0
    _lost_s: float = 0.0
    _began_s: float | None = None
    _usual_s: float = 0.0
    _suspect_until_s: float = 0.0
    _late_since_s: float | None = None
    _least_late_s: float = 0.0

    @property
    def began_s(self) -> float | None:
        """The monotonic time of session time 0, None before the first block."""
        return self._began_s

    @property
    def end_s(self) -> float:
        """Session time of the end of the last block."""
        return self._frames / self.sample_rate + self._lost_s

    def stamp(self, frames: int, now_s: float, overflow: bool = False) -> float:
        """Start of a block of `frames` samples that arrived at `now_s` (monotonic).

        `overflow`: the sound system says that samples before this block were lost.
        """
        if self._began_s is None:
            self._began_s = now_s - frames / self.sample_rate
            if self.origin_s is not None:
                self._lost_s = max(0.0, self._began_s - self.origin_s)
                self._began_s -= self._lost_s
        late_s = now_s - self._began_s - self.end_s - frames / self.sample_rate - self._usual_s
        if overflow:
            self._suspect_until_s = now_s + SUSPECT_FOR_S
        if late_s <= (SUSPECT_LATE_S if now_s < self._suspect_until_s else LATE_S):
            self._late_since_s = None
            self._usual_s += TRACKING * late_s
        elif self._late_since_s is None:
            self._late_since_s, self._least_late_s = now_s, late_s
        else:
            self._least_late_s = min(self._least_late_s, late_s)
            if now_s - self._late_since_s >= LATE_FOR_S:
                self._lost_s += self._least_late_s
                self._late_since_s = None
        start_s = self.end_s
        self._frames += frames
        return start_s
