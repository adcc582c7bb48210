"""The microphone as a source, through PortAudio: at the device's own rate, watched while it runs.

sounddevice is imported on first use only, because the import itself fails where the PortAudio library is
missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.capture_clock import CaptureClock
from app.source import Feed, SourceError
from app.threads import in_thread

log = logging.getLogger(__name__)

BLOCK_S = 0.05
SILENT_S = 2.0  # a stream that delivers nothing for so long is lost, whatever it says
OPEN_S = 10.0
CLOSE_S = 3.0
LOST_CLOSE_S = 0.3  # a lost device may never close; the person should hear of it now
WAKE_S = 0.1
MAX_CHANNELS = 2


@dataclass(frozen=True, slots=True)
class InputDevice:
    """One input of one host API. `index` is PortAudio's and only good until the next rescan; `key` lasts."""

    index: int
    host_api: str
    name: str
    channels: int
    sample_rate: int
    default: bool

    @property
    def key(self) -> str:
        """How settings and the command line remember it."""
        return f"{self.name} ({self.host_api})"


def list_inputs() -> list[InputDevice]:
    """Every device that can record, the default first. Raises `SourceError` when PortAudio is missing."""
    sd = _sounddevice()
    try:
        apis, devices = sd.query_hostapis(), sd.query_devices()
        default = sd.default.device[0]
        if default is None or default < 0:
            default = sd.query_hostapis(sd.default.hostapi)["default_input_device"] if apis else -1
    except sd.PortAudioError as error:
        raise SourceError(f"The sound system cannot be asked for microphones: {_first(error)}.") from error
    found = [
        InputDevice(
            index,
            apis[device["hostapi"]]["name"],
            device["name"],
            device["max_input_channels"],
            round(device["default_samplerate"]),
            index == default,
        )
        for index, device in enumerate(devices)
        if device["max_input_channels"] > 0
    ]
    return sorted(found, key=lambda device: not device.default)


def find_input(wanted: str | None) -> InputDevice:
    """The default microphone, or the one with this key, name or part of a name. Raises `SourceError`."""
    devices = list_inputs()
    if not devices:
        raise SourceError("There is no microphone; connect one, or give an audio file.")
    if wanted is None:
        return devices[0]
    for same in (
        lambda device: device.key == wanted,
        lambda device: device.name == wanted,
        lambda device: wanted.lower() in device.key.lower(),
    ):
        if matches := [device for device in devices if same(device)]:
            return matches[0]
    offered = ", ".join(f"'{device.key}'" for device in devices)
    raise SourceError(f"There is no microphone '{wanted}'; there are: {offered}.")


class MicrophoneSource:
    """Records until it is stopped or lost.

    `overflows` counts blocks before which the sound system lost audio.
    """

    live = True

    def __init__(self, device: str | None = None) -> None:
        self._wanted = device
        self._name = device or "microphone"
        self._blocks: deque[tuple[bytes, float]] = deque()
        self._arrived = asyncio.Event()
        self._heard_s = 0.0
        self._ended = False
        self.overflows = 0

    @property
    def name(self) -> str:
        return self._name

    def check(self) -> None:
        """Raises `SourceError` when there is no such microphone or no PortAudio."""
        self._name = find_input(self._wanted).name

    async def run(self, feed: Feed) -> None:
        """Record into the feed. Raises `SourceError` when the device cannot be opened or is lost."""
        device = find_input(self._wanted)
        self._name = device.name
        channels = min(MAX_CHANNELS, device.channels)
        clock = CaptureClock(device.sample_rate)
        stream = await self._open(device, channels, clock)
        limit_s = LOST_CLOSE_S
        try:
            while not feed.stopped:
                await self._wait()
                self._forward(feed, device.sample_rate, channels)
                self._see_that_it_lives()
            limit_s = CLOSE_S
        finally:
            await self._close(stream, limit_s)
            self._forward(feed, device.sample_rate, channels)

    async def _open(self, device: InputDevice, channels: int, clock: CaptureClock) -> Any:
        sd, loop = _sounddevice(), asyncio.get_running_loop()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed
                loop.call_soon_threadsafe(self._arrived.set)

        def block(data: Any, frames: int, _time: Any, status: Any) -> None:
            self._heard_s = time.monotonic()
            overflow = bool(status.input_overflow)
            self.overflows += overflow
            self._blocks.append((bytes(data), clock.stamp(frames, self._heard_s, overflow)))
            wake()

        def ended() -> None:
            self._ended = True
            wake()

        def open_stream() -> Any:
            stream = sd.RawInputStream(
                device=device.index,
                samplerate=device.sample_rate,
                channels=channels,
                dtype="float32",
                blocksize=round(device.sample_rate * BLOCK_S),
                callback=block,
                finished_callback=ended,
            )
            self._heard_s = time.monotonic()
            try:
                stream.start()
            except sd.PortAudioError:
                stream.close()
                raise
            return stream

        try:
            return await in_thread(open_stream, OPEN_S)
        except (sd.PortAudioError, ValueError) as error:
            raise SourceError(f"The microphone '{device.name}' cannot be opened: {_first(error)}.") from error
        except TimeoutError as error:
            raise SourceError(f"The microphone '{device.name}' did not open within {OPEN_S:g} s.") from error

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), WAKE_S)
        self._arrived.clear()

    def _forward(self, feed: Feed, sample_rate: int, channels: int) -> None:
        while self._blocks:
            data, start_s = self._blocks.popleft()
            feed.send(np.frombuffer(data, np.float32).reshape(-1, channels), sample_rate, start_s)

    def _see_that_it_lives(self) -> None:
        if self._ended:
            raise SourceError(f"The microphone '{self._name}' was disconnected; connect it and start again.")
        if time.monotonic() - self._heard_s > SILENT_S:
            raise SourceError(f"The microphone '{self._name}' went silent; check it and start again.")

    async def _close(self, stream: Any, limit_s: float) -> None:
        def close() -> None:
            stream.stop()
            stream.close()

        try:
            await in_thread(close, limit_s)
        except TimeoutError:
            log.warning("The microphone '%s' did not close within %g s.", self._name, limit_s)
        except _sounddevice().PortAudioError as error:
            log.warning("Closing the microphone '%s': %s.", self._name, _first(error))


def _sounddevice() -> Any:
    try:
        import sounddevice
    except OSError as error:
        raise SourceError(
            "The PortAudio library is missing; install it with `sudo apt install libportaudio2`."
        ) from error
    except ImportError as error:
        raise SourceError("The package 'sounddevice' is missing; install it with pip.") from error
    return sounddevice


def _first(error: Exception) -> str:
    """The first line of an error, as the inside of a sentence."""
    return str(error.args[0] if error.args else error).splitlines()[0].rstrip(".")
