"""The inputs of this machine: as PortAudio and the sound server list them, and as a person wants to see them.

sounddevice is imported on first use only, because the import itself fails where the PortAudio library is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.pulse import PulseSource, pulse_sources
from app.source import SourceError

# Which host API to take when several list the same device: the system's own shared one before old or exclusive ones.
_APIS = ("Windows WASAPI", "Core Audio", "PulseAudio", "ALSA", "Windows DirectSound", "MME", "Windows WDM-KS", "JACK")
_CARRIERS = ("pulse", "pipewire")  # ALSA's names for the sound server
# Plug-ins and mappings that ALSA and Windows list beside the devices.
_NOISE = re.compile(
    r"(sysdefault|samplerate|speexrate|speex|upmix|vdownmix|lavrate|dmix|dsnoop|oss|a52|jack|null|usbstream"
    r"|front|rear|center_lfe|side|surround\d+|iec958|spdif|hdmi)\b.*"
    r"|microsoft sound mapper.*|primary sound (capture )?driver|stereo mix \(\)",
    re.IGNORECASE,
)
_CARD = re.compile(r"\s*\(hw:(\d+),\d+\)")
_WINDOWS_PORT = re.compile(r"@System32\S+\s*|;\S*|%\S+")
_COPY = re.compile(r"\(\d+- ")  # Windows counts devices of the same kind: "Microphone (2- USB Audio)"
_MME_LENGTH = 31  # MME cuts names here


@dataclass(frozen=True, slots=True)
class InputDevice:
    """One input of one host API. `index` is PortAudio's and only good until the next rescan; `key` lasts.

    `pulse_source`: the sound server's name for it, to be asked for when it is opened. `monitor`: what the machine
    plays, and not a microphone. `card`: the number of its sound card where that is known.
    """

    index: int
    host_api: str
    name: str
    channels: int
    sample_rate: int
    default: bool
    pulse_source: str = ""
    monitor: bool = False
    card: str = ""

    @property
    def key(self) -> str:
        """How settings and the command line remember it."""
        return f"{self.name} ({self.host_api})"

    @property
    def label(self) -> str:
        """Its name without what only a driver wants to know."""
        name = _COPY.sub("(", _WINDOWS_PORT.sub("", _CARD.sub("", self.name)))
        return " ".join(name.split()) or self.host_api


def list_inputs(with_server: bool = True) -> list[InputDevice]:
    """Every device that can record, the default first, then the rest, then what the sound server has. Raises
    `SourceError` when PortAudio is missing.
    """
    sd = sounddevice()
    try:
        apis, devices = sd.query_hostapis(), sd.query_devices()
        default = sd.default.device[0]
        if default is None or default < 0:
            default = sd.query_hostapis(sd.default.hostapi)["default_input_device"] if apis else -1
    except sd.PortAudioError as error:
        raise SourceError(f"The sound system cannot be asked for microphones: {first_line(error)}.") from error
    found = [
        InputDevice(
            index,
            apis[device["hostapi"]]["name"],
            device["name"],
            device["max_input_channels"],
            round(device["default_samplerate"]),
            index == default,
            monitor=device["name"].startswith("Monitor of "),
            card=_card(device["name"]),
        )
        for index, device in enumerate(devices)
        if device["max_input_channels"] > 0
    ]
    found.sort(key=lambda device: not device.default)
    carrier = next((device for device in found if device.name in _CARRIERS), None)
    if with_server and carrier is not None:
        found += [_of_server(carrier, source) for source in pulse_sources()]
    return found


def _of_server(carrier: InputDevice, source: PulseSource) -> InputDevice:
    return InputDevice(
        carrier.index,
        "PulseAudio",
        source.description,
        source.channels,
        source.sample_rate,
        False,
        source.name,
        source.monitor,
        source.card,
    )


def _card(name: str) -> str:
    found = _CARD.search(name)
    return found[1] if found else ""


def tidy(devices: Iterable[InputDevice]) -> list[InputDevice]:
    """What a person chooses from: no plug-ins, every device once, microphones before monitors."""
    devices = list(devices)
    served = {device.card for device in devices if device.pulse_source}
    kept: list[InputDevice] = []
    for device in sorted(devices, key=lambda device: (_rank(device), -len(device.label))):
        plumbing = served and not device.pulse_source and _behind_server(device, served)
        if plumbing or _NOISE.fullmatch(device.name) or any(_same(device, other) for other in kept):
            continue
        kept.append(device)
    return sorted(kept, key=lambda device: (device.monitor, not device.default, device.label.casefold()))


def _behind_server(device: InputDevice, cards: set[str]) -> bool:
    """Whether the sound server's own list has it under a better name."""
    return device.name in (*_CARRIERS, "default") or (device.card != "" and device.card in cards)


def _rank(device: InputDevice) -> int:
    return _APIS.index(device.host_api) if device.host_api in _APIS else len(_APIS)


def _same(device: InputDevice, other: InputDevice) -> bool:
    """Whether it is the same device by another way; names may have been cut off."""
    short, long = sorted((device, other), key=lambda each: len(each.label))
    one, two = short.label.casefold(), long.label.casefold()
    cut = len(short.name) >= _MME_LENGTH - 1 and two.startswith(one)
    return device.pulse_source == other.pulse_source and (one == two or cut) and device.host_api != other.host_api


def match_input(devices: Iterable[InputDevice], wanted: str) -> InputDevice | None:
    """The one with this key, name or label, or with this part of them."""
    devices = list(devices)
    for same in (
        lambda device: device.key == wanted,
        lambda device: wanted in (device.name, device.label),
        lambda device: wanted.lower() in device.key.lower(),
    ):
        if found := next((device for device in devices if same(device)), None):
            return found
    return None


def find_input(wanted: str | None) -> InputDevice:
    """The default microphone, or the one with this key, name or part of a name. Raises `SourceError`."""
    devices = list_inputs(with_server=wanted is not None)
    if not devices:
        raise SourceError("There is no microphone; connect one, or give an audio file.")
    if wanted is None:
        return devices[0]
    if found := match_input(devices, wanted):
        return found
    offered = ", ".join(f"'{device.key}'" for device in devices)
    raise SourceError(f"There is no microphone '{wanted}'; there are: {offered}.")


def rescan() -> None:
    """See devices that came or went. Ends every open stream. Raises `SourceError`."""
    sd = sounddevice()
    try:
        sd._terminate()
        sd._initialize()
    except sd.PortAudioError as error:
        raise SourceError(f"The sound system cannot be started again: {first_line(error)}.") from error


def fingerprint() -> str:
    """Changes when a sound card comes or goes, where the system says so in a file; asking costs nothing."""
    try:
        return Path("/proc/asound/pcm").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def sounddevice() -> Any:
    """The module. Raises `SourceError` when it or PortAudio is missing."""
    try:
        import sounddevice as module
    except OSError as error:
        raise SourceError(
            "The PortAudio library is missing; install it with `sudo apt install libportaudio2`."
        ) from error
    except ImportError as error:
        raise SourceError("The package 'sounddevice' is missing; install it with pip.") from error
    return module


def first_line(error: Exception) -> str:
    """The first line of an error, as the inside of a sentence."""
    return str(error.args[0] if error.args else error).splitlines()[0].rstrip(".")
