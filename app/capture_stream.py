"""One open input: blocks of sound with their place on the session clock, and whether it still lives."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.capture_clock import CaptureClock
from app.clock import now_s
from app.devices import InputDevice, first_line, rescan, sounddevice
from app.pulse import pulse_source
from app.source import SourceError
from app.threads import in_thread

log = logging.getLogger(__name__)

BLOCK_S = 0.05
SILENT_S = 2.0  # a stream that delivers nothing for so long is lost, whatever it says
OPEN_S = 10.0
MAX_CHANNELS = 2
TURN_S = 1.0

# PortAudio takes one call at a time. A lost device may never close: opening another does not wait for it for ever, but
# a rescan, which would end the hanging stream under its own call, does.
_turn = threading.Lock()


@contextlib.contextmanager
def _in_turn(needed: bool) -> Iterator[None]:
    taken = _turn.acquire(timeout=TURN_S)
    if needed and not taken:
        raise SourceError("The sound system does not answer: a lost device still holds it.")
    try:
        yield
    finally:
        if taken:
            _turn.release()


async def rescan_devices() -> None:
    """Look for devices anew; no stream may be open. Raises `SourceError`."""

    def look() -> None:
        with _in_turn(needed=True):
            rescan()

    try:
        await in_thread(look, OPEN_S)
    except TimeoutError as error:
        raise SourceError("The sound system does not answer.") from error


class CaptureStream:
    """`arrived` is set whenever there is something to take or to see."""

    def __init__(self, device: InputDevice, clock: CaptureClock, arrived: asyncio.Event) -> None:
        self.device = device
        self.channels = max(1, min(MAX_CHANNELS, device.channels))
        self.delivered = False
        self.shift_s: float | None = None  # for who takes the blocks: how much later they are put
        self._clock, self._arrived = clock, arrived
        self._blocks: deque[tuple[bytes, float]] = deque()
        self._heard_s = 0.0
        self._ended = False
        self._overflows = self._overflows_taken = 0
        self._stream: Any = None

    async def open(self) -> None:
        """Begin to record. Raises `SourceError`."""
        sd, loop = sounddevice(), asyncio.get_running_loop()
        device = self.device

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(self._arrived.set)

        def block(data: Any, frames: int, _time: Any, status: Any) -> None:
            self._heard_s = now_s()
            overflow = bool(status.input_overflow)
            self._overflows += overflow
            self._blocks.append((bytes(data), self._clock.stamp(frames, self._heard_s, overflow)))
            self.delivered = True
            wake()

        def ended() -> None:
            self._ended = True
            wake()

        try:
            self._stream = await in_thread(lambda: self._start(sd, block, ended), OPEN_S)
        except (sd.PortAudioError, ValueError) as error:
            raise SourceError(f"The microphone '{device.label}' cannot be opened: {first_line(error)}.") from error
        except TimeoutError as error:
            raise SourceError(f"The microphone '{device.label}' did not open within {OPEN_S:g} s.") from error

    def take(self) -> Iterator[tuple[NDArray[np.float32], float]]:
        """What has arrived: samples, shape [frames, channels], and the session time of the first."""
        while self._blocks:
            data, start_s = self._blocks.popleft()
            yield np.frombuffer(data, np.float32).reshape(-1, self.channels), start_s

    def take_overflows(self) -> int:
        """How often, since it was last asked, the sound system lost audio."""
        new = self._overflows - self._overflows_taken
        self._overflows_taken += new
        return new

    @property
    def loss(self) -> str:
        """What has become of it, as the inside of a sentence; "" while it lives."""
        if self._ended:
            return "was disconnected"
        return "went silent" if now_s() - self._heard_s > SILENT_S else ""

    async def close(self, limit_s: float) -> None:
        """End it; a device that does not answer within the limit is left alone."""

        stream, self._stream = self._stream, None

        def close() -> None:
            with _in_turn(needed=False):
                stream.stop()
                stream.close()

        if stream is None:
            return

        try:
            await in_thread(close, limit_s)
        except TimeoutError:
            log.warning("The microphone '%s' did not close within %g s.", self.device.label, limit_s)
        except sounddevice().PortAudioError as error:
            log.warning("Closing the microphone '%s': %s.", self.device.label, first_line(error))

    def _start(self, sd: Any, block: Callable[..., None], ended: Callable[[], None]) -> Any:
        with _in_turn(needed=False), pulse_source(self.device.pulse_source):
            stream = sd.RawInputStream(
                device=self.device.index,
                samplerate=self.device.sample_rate,
                channels=self.channels,
                dtype="float32",
                blocksize=round(self.device.sample_rate * BLOCK_S),
                callback=block,
                finished_callback=ended,
            )
            self._heard_s = now_s()
            try:
                stream.start()
            except sd.PortAudioError:
                stream.close()
                raise
        return stream
