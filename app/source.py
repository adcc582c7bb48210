"""What a source of sound is, and what it is given to feed; `microphone` and `playback` hold the two kinds."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.errors import UserError
from app.observe import Notifier
from engine.messages import Audio

GAP_S = 0.001  # less is rounding


class SourceError(UserError):
    """A source that cannot be opened or was lost; one sentence."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """How a source is. `name`: what delivers now. `trouble`: one sentence, or "". `lost`: nothing delivers sound at
    this moment, and it is tried again. `overflows`: how often the sound system lost some.
    """

    name: str
    trouble: str = ""
    lost: bool = False
    overflows: int = 0


class Feed:
    """The way from one source to the engine, for one session. Everything on the loop's thread.

    `sent_s`: session time up to which audio was handed over. `processed_s`: how far the engine has listened.
    `level`: peak of each block in [0, 1], for the meter. `gap(start_s, end_s)` hears of audio that was lost.
    `reports`: how the source is, whenever that changes.
    """

    def __init__(self, send: Callable[[Audio], None], gap: Callable[[float, float], None]) -> None:
        self._send, self._gap = send, gap
        self._moved = asyncio.Event()
        self._stopped = asyncio.Event()
        self.level: Notifier[float] = Notifier()
        self.reports: Notifier[SourceReport] = Notifier()
        self.sent_s = 0.0
        self.processed_s = 0.0

    @property
    def stopped(self) -> bool:
        """The source is asked to end: to send what it has captured and return."""
        return self._stopped.is_set()

    def stop(self) -> None:
        """Ask the source to end."""
        self._stopped.set()
        self._moved.set()

    def send(self, samples: NDArray[np.float32], sample_rate: int, start_s: float) -> None:
        """Hand over one block, shape [frames, channels], in the order of `start_s`; a jump is a gap."""
        if start_s - self.sent_s > GAP_S:
            self._gap(self.sent_s, start_s)
        frames, channels = samples.shape
        self.sent_s = start_s + frames / sample_rate
        self._send(Audio(samples.astype("<f4", copy=False).tobytes(), sample_rate, channels, start_s))
        self.level.emit(min(1.0, float(np.abs(samples).max(initial=0.0))))

    def processed(self, processed_s: float) -> None:
        """The engine has listened this far."""
        self.processed_s = max(self.processed_s, processed_s)
        self._moved.set()

    async def room(self, ahead_s: float) -> None:
        """Wait until the engine is at most `ahead_s` seconds behind what was sent, or `stop`."""
        while self.sent_s - self.processed_s > ahead_s and not self.stopped:
            self._moved.clear()
            await self._moved.wait()

    async def pause(self, seconds: float) -> None:
        """Wait, but not beyond `stop`."""
        if seconds > 0 and not self.stopped:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), seconds)


class Source(Protocol):
    """One run of sound. A source serves one session and is then thrown away."""

    @property
    def name(self) -> str:
        """What the person calls it: the file's name, the microphone's name."""
        ...

    @property
    def live(self) -> bool:
        """Sound comes as it is spoken; false for a file that waits for the engine."""
        ...

    def check(self) -> None:
        """See that it can be opened, without recording. Raises `SourceError`."""
        ...

    async def run(self, feed: Feed) -> None:
        """Open, feed until the end or until `feed.stopped`, close. Raises `SourceError` when it fails.

        A microphone that is lost on the way does not: it says so in `feed.reports` and looks for it, or another.

        Everything captured before the stop has been sent when this returns.
        """
        ...
