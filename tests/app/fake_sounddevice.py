"""A sound system without hardware: the part of `sounddevice` that the app uses, fed by hand."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

import numpy as np


class PortAudioError(Exception):
    """As sounddevice's."""


class Status:
    """Callback flags."""

    def __init__(self, input_overflow: bool = False) -> None:
        self.input_overflow = input_overflow


class Stream:
    """One open input; `feed` calls back as the device would, from another thread."""

    def __init__(self, system: SoundSystem, callback: Any, finished_callback: Callable[[], None], **how: Any) -> None:
        if system.open_error:
            raise system.open_error
        device = system.devices[how["device"]]
        if device["name"] in system.broken:
            raise PortAudioError("Error opening RawInputStream: Device unavailable [PaErrorCode -9985]")
        if how["samplerate"] != device["default_samplerate"]:
            raise PortAudioError("Error opening RawInputStream: Invalid sample rate [PaErrorCode -9997]")
        if how["channels"] > device["max_input_channels"]:
            raise PortAudioError("Error opening RawInputStream: Invalid number of channels [PaErrorCode -9998]")
        self.how, self.closed = how, False
        self.hang = threading.Event()  # while it is clear, the device does not stop
        self.hang.set()
        self._callback, self._finished = callback, finished_callback
        system.streams.append(self)

    def start(self) -> None:
        pass

    def stop(self) -> None:
        self.hang.wait()
        self._finished()

    def close(self) -> None:
        self.closed = True

    def feed(self, value: float, overflow: bool = False) -> None:
        """One block of a constant."""
        frames = self.how["blocksize"]
        data = np.full((frames, self.how["channels"]), value, np.float32).tobytes()
        self._on_thread(lambda: self._callback(data, frames, None, Status(overflow)))

    def unplug(self) -> None:
        """The device goes away."""
        self._on_thread(self._finished)

    def _on_thread(self, function: Callable[[], None]) -> None:
        thread = threading.Thread(target=function)
        thread.start()
        thread.join()


class SoundSystem(types.ModuleType):
    """Stands in for the module `sounddevice`."""

    PortAudioError = PortAudioError

    def __init__(self, devices: list[dict[str, Any]], default: int = 0) -> None:
        super().__init__("sounddevice")
        self.devices = devices
        self.streams: list[Stream] = []
        self.open_error: Exception | None = None
        self.plugged: list[dict[str, Any]] | None = None  # the list after the next rescan
        self.broken: set[str] = set()  # names that cannot be opened
        self.rescans = 0
        self.played: list[tuple[Any, int]] = []
        self.default = types.SimpleNamespace(device=(default, -1), hostapi=0)

    def query_hostapis(self, index: int | None = None) -> Any:
        apis = ({"name": "ALSA", "default_input_device": -1}, {"name": "JACK", "default_input_device": -1})
        return apis if index is None else apis[index]

    def query_devices(self) -> list[dict[str, Any]]:
        return self.devices

    def _terminate(self) -> None:
        """Open streams end, as PortAudio's do."""
        for stream in self.streams:
            if not stream.closed:
                stream.closed = True
                stream.unplug()

    def _initialize(self) -> None:
        """What is plugged in now is what is listed from now on."""
        self.rescans += 1
        if self.plugged is not None:
            self.devices = self.plugged

    def play(self, samples: Any, rate: int) -> None:
        self.played.append((samples, rate))

    def wait(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def RawInputStream(self, **how: Any) -> Stream:
        return Stream(self, how.pop("callback"), how.pop("finished_callback"), **how)


def device(name: str, channels: int = 2, rate: float = 48_000.0, hostapi: int = 0) -> dict[str, Any]:
    return {"name": name, "hostapi": hostapi, "max_input_channels": channels, "default_samplerate": rate}
