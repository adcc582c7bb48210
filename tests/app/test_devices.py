"""What a person sees of the inputs of a machine."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from app.devices import InputDevice, match_input, tidy
from app.pulse import pulse_source, pulse_sources


def on(api: str, name: str, **more: Any) -> InputDevice:
    return InputDevice(0, api, name, 2, 48_000, more.pop("default", False), **more)


HEADSET = "Headset Microphone (2- Jabra Evolve2 65)"
WINDOWS = [
    on("MME", "Microsoft Sound Mapper - Input"),
    on("MME", HEADSET[:31]),
    on("MME", "Headset Microphone (Jabra Evolv"),
    on("Windows DirectSound", "Primary Sound Capture Driver"),
    on("Windows DirectSound", HEADSET),
    on("Windows WASAPI", HEADSET, default=True),
    on("Windows WDM-KS", "Headset Microphone (Jabra Evolve2 65)"),
    on("Windows WASAPI", "Stereo Mix (Realtek Audio)"),
]
ALSA = [
    on("ALSA", "HDA Intel PCH: ALC257 Analog (hw:0,0)", card="0"),
    on("ALSA", "Blue Yeti: USB Audio (hw:2,0)", card="2"),
    *(on("ALSA", name) for name in ("sysdefault", "samplerate", "speexrate", "upmix", "vdownmix", "lavrate", "jack")),
    *(on("ALSA", name) for name in ("oss", "a52", "surround51", "front")),
    on("ALSA", "pulse"),
    on("ALSA", "default", default=True),
]
SERVED = [
    on("PulseAudio", "Built-in Audio Analog Stereo", pulse_source="alsa_input.pci", card="0"),
    on("PulseAudio", "Monitor of Built-in Audio", pulse_source="alsa_output.pci.monitor", monitor=True, card="0"),
]


def test_one_headset_is_listed_once_on_windows() -> None:
    assert [device.label for device in tidy(WINDOWS)] == [
        "Headset Microphone (Jabra Evolve2 65)",
        "Stereo Mix (Realtek Audio)",
    ]
    assert tidy(WINDOWS)[0].host_api == "Windows WASAPI"


def test_plug_ins_of_alsa_are_left_out() -> None:
    assert [device.label for device in tidy(ALSA)] == [
        "default",
        "Blue Yeti: USB Audio",
        "HDA Intel PCH: ALC257 Analog",
        "pulse",
    ]


def test_what_the_sound_server_names_better_is_not_listed_twice() -> None:
    assert [device.label for device in tidy([*ALSA, *SERVED])] == [
        "Blue Yeti: USB Audio",
        "Built-in Audio Analog Stereo",
        "Monitor of Built-in Audio",
    ], "a card of which the server knows nothing stays; monitors come last"


def test_two_devices_of_the_same_name_stay_two() -> None:
    twins = [on("Core Audio", "USB Microphone"), on("Core Audio", "USB Microphone")]
    assert len(tidy(twins)) == 2


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("Mic\nwith a\tbreak ", "Mic with a break"),
        ("Mikrofon für Übung 🎤", "Mikrofon für Übung 🎤"),
        ("", "ALSA"),
        ("Card (hw:1,0)", "Card"),
        ("@System32\\drivers\\bthhfenum.sys,#2;%1 Hands-Free", "1 Hands-Free"),
    ],
)
def test_names_are_one_readable_line(name: str, label: str) -> None:
    if not name.startswith("@"):
        assert on("ALSA", name).label == label
    assert "\n" not in on("ALSA", name).label
    assert on("ALSA", name).label


def test_a_device_is_found_by_key_name_label_or_part() -> None:
    for wanted in (SERVED[0].key, SERVED[0].name, "analog stereo"):
        assert match_input(SERVED, wanted) == SERVED[0]
    assert match_input(ALSA, "ALC257 analog") == ALSA[0]
    assert match_input(ALSA, "nothing like it") is None


def test_the_servers_sources_have_names_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {
            "name": "alsa_input.usb",
            "description": "Blue Yeti\nStereo",
            "sample_specification": "s24le 2ch 44100Hz",
            "properties": {"alsa.card": "2", "device.class": "sound"},
        },
        {"name": "voice.monitor", "description": None, "properties": None},
    ]
    answer(monkeypatch, json.dumps(rows).encode())
    yeti, monitor = pulse_sources()
    assert (yeti.description, yeti.channels, yeti.sample_rate, yeti.monitor, yeti.card) == (
        "Blue Yeti Stereo",
        2,
        44_100,
        False,
        "2",
    )
    assert monitor.monitor
    assert monitor.description == "voice.monitor"


@pytest.mark.parametrize("said", [b"", b"[1]", b"{}", b"\xff", b'[{"x": 1}]', b"null"])
def test_a_server_that_speaks_nonsense_has_no_sources(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, said)
    assert pulse_sources() == []


@pytest.mark.parametrize("error", [FileNotFoundError(), subprocess.TimeoutExpired("pactl", 2)])
def test_no_server_or_a_hanging_one_has_no_sources(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("app.pulse.subprocess.run", fail)
    assert pulse_sources() == []


def test_the_choice_of_a_source_is_only_for_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("PULSE_SOURCE", "mine")
    with pulse_source("alsa_input.usb"):
        assert os.environ["PULSE_SOURCE"] == "alsa_input.usb"
    assert os.environ["PULSE_SOURCE"] == "mine"
    monkeypatch.delenv("PULSE_SOURCE")
    with pulse_source("x"), pulse_source(""):
        assert os.environ["PULSE_SOURCE"] == "x"
    assert "PULSE_SOURCE" not in os.environ


def answer(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    done = subprocess.CompletedProcess(["pactl"], 0, said, b"")
    monkeypatch.setattr("app.pulse.subprocess.run", lambda *_, **__: done)
