"""Listening to a microphone outside of a session: its level, and a short test recording that can be played back."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

import numpy as np

from app.devices import first_line, sounddevice
from app.errors import UserError
from app.microphone import MicrophoneSource
from app.observe import Notifier
from app.source import Feed, SourceReport
from app.threads import in_thread
from engine.messages import Audio

log = logging.getLogger(__name__)

TEST_S = 5.0
PLAY_LIMIT_S = TEST_S + 10.0

IDLE, LISTENING, RECORDING, RECORDED, PLAYING = "idle", "listening", "recording", "recorded", "playing"


class MicrophoneCheck:
    """One device at a time. `level`: peaks in [0, 1]; `state`: one of the words above; `problem`: a sentence, or "".

    On the loop's thread. `close` ends everything.
    """

    def __init__(self, make_source: Callable[[str | None], MicrophoneSource] = MicrophoneSource) -> None:
        self.level: Notifier[float] = Notifier()
        self.states: Notifier[str] = Notifier()
        self.problems: Notifier[str] = Notifier()
        self.state = IDLE
        self.recorded_s = 0.0
        self._make_source = make_source
        self._feed: Feed | None = None
        self._listening: asyncio.Task[None] | None = None
        self._playing: asyncio.Task[None] | None = None
        self._blocks: list[tuple[np.ndarray[Any, Any], int]] = []
        self._problem = ""

    async def listen(self, key: str | None) -> None:
        """Show the level of this device from now on; what was recorded before is forgotten."""
        await self.close()
        self._blocks.clear()
        self._say("")
        feed = self._feed = Feed(self._hear, lambda start_s, end_s: None)
        feed.level.subscribe(self.level.emit)
        feed.reports.subscribe(self._report)
        self._enter(LISTENING)
        self._listening = asyncio.create_task(self._run(self._make_source(key), feed))

    def record(self) -> None:
        """Record the next seconds."""
        if self.state in (LISTENING, RECORDED):
            self._blocks.clear()
            self.recorded_s = 0.0
            self._enter(RECORDING)

    def play(self) -> None:
        """Play back what was recorded, through the default output."""
        if self.state == RECORDED:
            self._enter(PLAYING)
            self._playing = asyncio.create_task(self._play())

    async def close(self) -> None:
        """Listen no more."""
        feed, self._feed = self._feed, None
        if feed is not None:
            feed.stop()
        if self._playing is not None and not self._playing.done():
            with contextlib.suppress(UserError):
                sounddevice().stop()
        tasks = [task for task in (self._listening, self._playing) if task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listening = self._playing = None
        self.level.emit(0.0)
        self._enter(IDLE)

    # ------------------------------------------------------------ inside

    async def _run(self, source: MicrophoneSource, feed: Feed) -> None:
        try:
            await source.run(feed)
        except UserError as error:
            self._say(str(error))
        except Exception as error:
            log.exception("Listening to '%s' failed.", source.name)
            self._say(f"The microphone cannot be used ({type(error).__name__}); the log has the details.")
        if self._feed is feed:
            self.level.emit(0.0)
            self._enter(IDLE)

    def _report(self, report: SourceReport) -> None:
        self._say(report.trouble)

    def _hear(self, audio: Audio) -> None:
        if self.state != RECORDING:
            return
        samples = np.frombuffer(audio.pcm, "<f4").reshape(-1, audio.channels)
        self._blocks.append((samples.mean(axis=1), audio.sample_rate))
        self.recorded_s += len(samples) / audio.sample_rate
        if self.recorded_s >= TEST_S:
            self._enter(RECORDED)

    async def _play(self) -> None:
        rate = self._blocks[0][1]
        samples = np.concatenate([block for block, block_rate in self._blocks if block_rate == rate])

        def play() -> None:
            sd = sounddevice()
            sd.play(samples, rate)
            sd.wait()

        try:
            await in_thread(play, PLAY_LIMIT_S)
        except UserError as error:
            self._say(str(error))
        except TimeoutError:
            self._say("The sound system does not play; the recording itself is good.")
        except Exception as error:  # noqa: BLE001 - PortAudio's own class is only known once it is loaded
            self._say(f"The recording cannot be played: {first_line(error)}.")
        if self.state == PLAYING:
            self._enter(RECORDED)

    def _say(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            self.problems.emit(problem)

    def _enter(self, state: str) -> None:
        if state != self.state:
            self.state = state
            self.states.emit(state)
