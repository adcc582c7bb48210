"""The microphone against a sound system that is played by hand."""

from __future__ import annotations

import asyncio
import builtins
import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.capture_clock import CaptureClock
from app.devices import find_input, list_inputs
from app.microphone import MicrophoneSource
from app.source import Feed, SourceError
from engine.messages import Audio
from tests.app.fake_sounddevice import PortAudioError, SoundSystem, Stream, device
from tests.app.helpers import until

DEVICES = [
    device("Speakers", channels=0),
    device("Headset", channels=1, rate=16_000.0),
    device("Array", channels=8, rate=44_100.0),
    device("Headset", channels=1, rate=48_000.0, hostapi=1),
]


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SoundSystem:
    fake = SoundSystem(list(DEVICES), default=2)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def test_inputs_are_listed_default_first_with_their_host_api(system: SoundSystem) -> None:
    assert [d.key for d in list_inputs()] == ["Array (ALSA)", "Headset (ALSA)", "Headset (JACK)"]


@pytest.mark.parametrize(
    ("wanted", "index"), [(None, 2), ("Headset (JACK)", 3), ("Headset", 1), ("array", 2), ("jack", 3)]
)
def test_a_microphone_is_found_by_key_name_or_part(system: SoundSystem, wanted: str | None, index: int) -> None:
    assert find_input(wanted).index == index


def test_without_a_default_the_first_input_is_taken(system: SoundSystem) -> None:
    system.default.device = (-1, -1)
    assert find_input(None).index == 1


def test_what_is_missing_is_said_in_one_sentence(system: SoundSystem) -> None:
    with pytest.raises(SourceError, match=r"no microphone 'Studio'; there are: 'Array \(ALSA\)'"):
        MicrophoneSource("Studio").check()
    system.devices = [DEVICES[0]]
    with pytest.raises(SourceError, match="There is no microphone; connect one"):
        MicrophoneSource().check()


def test_a_missing_portaudio_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    really_import = builtins.__import__

    def no_portaudio(name: str, *args: Any) -> Any:
        if name == "sounddevice":
            raise OSError("PortAudio library not found")
        return really_import(name, *args)

    monkeypatch.delitem(sys.modules, "sounddevice", raising=False)
    monkeypatch.setattr(builtins, "__import__", no_portaudio)
    with pytest.raises(SourceError, match="apt install libportaudio2"):
        MicrophoneSource().check()


def record(
    system: SoundSystem, act: Callable[[Stream, Feed], None], device: str | None = None
) -> tuple[list[Audio], list[tuple[float, float]], MicrophoneSource]:
    """Open, let `act` play the device, then stop; what was sent, the gaps, and the source."""
    sent: list[Audio] = []
    gaps: list[tuple[float, float]] = []
    source = MicrophoneSource(device)

    async def run() -> None:
        feed = Feed(sent.append, lambda start_s, end_s: gaps.append((start_s, end_s)))
        running = asyncio.create_task(source.run(feed))
        await until(lambda: bool(system.streams) or running.done())
        if system.streams:
            act(system.streams[0], feed)
        await asyncio.wait_for(running, 30)

    asyncio.run(run())
    return sent, gaps, source


def test_everything_captured_before_stop_is_sent(system: SoundSystem) -> None:
    def act(stream: Stream, feed: Feed) -> None:
        for value in (0.1, 0.2, 0.3):
            stream.feed(value)
        feed.stop()

    sent, gaps, source = record(system, act)
    assert source.name == "Array"
    assert system.streams[0].closed
    assert system.streams[0].how["channels"] == 2, "capped"
    assert system.streams[0].how["dtype"] == "float32"
    assert [(a.sample_rate, a.channels) for a in sent] == [(44_100, 2)] * 3
    assert [a.start_s for a in sent] == pytest.approx([0.0, 0.05, 0.1], abs=1e-3)
    assert [float(np.frombuffer(a.pcm, np.float32)[0]) for a in sent] == pytest.approx([0.1, 0.2, 0.3])
    assert gaps == []


def test_the_level_is_the_peak_of_each_block(system: SoundSystem) -> None:
    levels: list[float] = []

    def act(stream: Stream, feed: Feed) -> None:
        feed.level.subscribe(levels.append)
        stream.feed(-0.4)
        stream.feed(1.7)
        feed.stop()

    record(system, act)
    assert levels == pytest.approx([0.4, 1.0])


def test_overflows_are_counted(system: SoundSystem) -> None:
    def act(stream: Stream, feed: Feed) -> None:
        stream.feed(0.1)
        stream.feed(0.1, overflow=True)
        feed.stop()

    assert record(system, act)[2].overflows == 1


def test_a_device_that_cannot_be_opened_says_why(system: SoundSystem) -> None:
    system.open_error = PortAudioError("Error opening RawInputStream: Device unavailable [PaErrorCode -9985]")
    with pytest.raises(SourceError, match=r"'Array' cannot be opened: Error opening.*unavailable"):
        record(system, lambda stream, feed: None)


# ---------------------------------------------------------------- the clock

RATE, BLOCK = 48_000, 2400  # 50 ms


def stamps(arrivals_s: list[float], overflow_at: int = -1) -> list[float]:
    clock = CaptureClock(RATE)
    return [clock.stamp(BLOCK, at, n == overflow_at) for n, at in enumerate(arrivals_s)]


def test_jitter_is_no_gap() -> None:
    rng = np.random.default_rng(1)
    arrivals = [100 + n * 0.05 + rng.uniform(0, 0.15) for n in range(2000)]
    assert stamps(sorted(arrivals))[-1] == pytest.approx(1999 * 0.05)


def test_a_stall_that_is_made_up_for_is_no_gap() -> None:
    arrivals = [n * 0.05 for n in range(100)]
    arrivals += [arrivals[-1] + 3.0 + n * 0.001 for n in range(60)]
    arrivals += [arrivals[-1] + (n + 1) * 0.05 for n in range(100)]
    assert stamps(arrivals)[-1] == pytest.approx((len(arrivals) - 1) * 0.05)


def test_lost_audio_moves_the_clock_ahead_once() -> None:
    arrivals = [n * 0.05 for n in range(100)] + [3.0 + n * 0.05 for n in range(100, 200)]
    starts = stamps(arrivals)
    assert starts[-1] == pytest.approx(199 * 0.05 + 3.0, abs=0.02)
    jumps = [b - a for a, b in itertools.pairwise(starts) if b - a > 0.051]
    assert jumps == pytest.approx([3.05], abs=0.02)


def test_a_short_loss_counts_when_the_sound_system_reports_it() -> None:
    arrivals = [n * 0.05 for n in range(100)] + [0.1 + n * 0.05 for n in range(100, 200)]
    assert stamps(arrivals, overflow_at=100)[-1] == pytest.approx(199 * 0.05 + 0.1, abs=0.03)


def test_slow_drift_of_a_device_is_no_gap() -> None:
    arrivals = [n * 0.05 * 1.0003 for n in range(72_000)]  # an hour, 300 ppm
    assert stamps(arrivals)[-1] == pytest.approx(71_999 * 0.05)
