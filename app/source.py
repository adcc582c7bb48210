"""What a source of sound is, and what it is given to feed; `microphone` and `playback` hold the two kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from app.errors import UserError
from app.observe import Notifier
from engine.messages import Audio

FLOAT_BYTES = 4
GAP_S = 0.001  # less is rounding


class SourceError(UserError):
    """A source that cannot be opened or was lost; one sentence."""


class Feed:
    """The way from one source to the engine, for one session.

    `sent_s`: session time up to which audio was handed over. `processed_s`: how far the engine has listened.
    `level`: peak of each block in [0, 1], for the meter. `gap(start_s, end_s)` hears of audio that was lost.
    """

    def __init__(self, send: Callable[[Audio], None], gap: Callable[[float, float], None]) -> None:
        self._send, self._gap = send, gap
        self._moved = asyncio.Event()
        self.level: Notifier[float] = Notifier()
        self.sent_s = 0.0
        self.processed_s = 0.0

    def send(self, audio: Audio) -> None:
        """Hand over one block. Call it on the loop's thread, in the order of `start_s`; a jump is a gap."""
        if audio.start_s - self.sent_s > GAP_S:
            self._gap(self.sent_s, audio.start_s)
        frames = len(audio.pcm) // (FLOAT_BYTES * audio.channels)
        self.sent_s = audio.start_s + frames / audio.sample_rate
        self._send(audio)

    def processed(self, processed_s: float) -> None:
        """The engine has listened this far."""
        self.processed_s = max(self.processed_s, processed_s)
        self._moved.set()

    async def room(self, ahead_s: float) -> None:
        """Wait until the engine is at most `ahead_s` seconds behind what was sent."""
        while self.sent_s - self.processed_s > ahead_s:
            self._moved.clear()
            await self._moved.wait()


class Source(Protocol):
    """One run of sound. A source serves one session and is then thrown away."""

    @property
    def name(self) -> str:
        """What the person calls it: the file's name, the microphone's name."""
        ...

    def check(self) -> None:
        """See that it can be opened, without recording. Raises `SourceError`."""
        ...

    async def run(self, feed: Feed) -> None:
        """Open, feed until the end or until `stop`, close. Raises `SourceError` when it fails or is lost.

        Everything captured before `stop` has been sent when this returns.
        """
        ...

    def stop(self) -> None:
        """Let `run` return soon. Safe at any time, more than once."""
        ...
