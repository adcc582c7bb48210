"""The level of a microphone outside of a session, and its test recording."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable

import pytest

from app import mic_check
from app.mic_check import IDLE, LISTENING, PLAYING, RECORDED, RECORDING, MicrophoneCheck
from tests.app.fake_sounddevice import PortAudioError, SoundSystem, device
from tests.app.helpers import until


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SoundSystem:
    fake = SoundSystem([device("Array"), device("Headset", channels=1, rate=16_000.0)], default=0)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    monkeypatch.setattr(mic_check, "TEST_S", 0.2)
    return fake


def play(scenario: Callable[[MicrophoneCheck], Awaitable[None]]) -> tuple[list[str], list[str], list[float]]:
    states: list[str] = []
    problems: list[str] = []
    levels: list[float] = []

    async def run() -> None:
        check = MicrophoneCheck()
        check.states.subscribe(states.append)
        check.problems.subscribe(problems.append)
        check.level.subscribe(levels.append)
        try:
            await scenario(check)
        finally:
            await check.close()
        assert check.state == IDLE

    asyncio.run(run())
    return states, problems, levels


def test_level_recording_and_playback(system: SoundSystem) -> None:
    async def scenario(check: MicrophoneCheck) -> None:
        await check.listen(None)
        await until(lambda: bool(system.streams))
        heard: list[float] = []
        check.level.subscribe(heard.append)
        system.streams[0].feed(0.5)
        await until(lambda: bool(heard))
        check.play()
        assert check.state == LISTENING, "there is nothing to play yet"
        check.record()
        for _ in range(4):
            system.streams[0].feed(0.25)
        await until(lambda: check.state == RECORDED)
        system.streams[0].feed(0.9)
        check.play()
        await until(lambda: bool(system.played) and check.state == RECORDED)

    states, problems, levels = play(scenario)
    assert states == [LISTENING, RECORDING, RECORDED, PLAYING, RECORDED, IDLE]
    assert problems == []
    assert levels[1:3] == pytest.approx([0.5, 0.25])
    assert levels[-1] == 0.0
    ((samples, rate),) = system.played
    assert rate == 48_000
    assert samples == pytest.approx([0.25] * len(samples))
    assert len(samples) == pytest.approx(0.2 * rate, abs=0.05 * rate)
    assert system.streams[0].closed


def test_another_device_takes_the_place(system: SoundSystem) -> None:
    async def scenario(check: MicrophoneCheck) -> None:
        for key in (None, "Headset (ALSA)"):
            await check.listen(key)
            await until(lambda: any(not stream.closed for stream in system.streams))
        assert [stream.closed for stream in system.streams] == [True, False]
        assert system.streams[1].how["device"] == 1

    play(scenario)


def test_a_device_that_cannot_be_used_says_why(system: SoundSystem) -> None:
    system.open_error = PortAudioError("Device unavailable")

    async def scenario(check: MicrophoneCheck) -> None:
        await check.listen(None)
        await until(lambda: check.state == IDLE)

    assert any("cannot be opened: Device unavailable" in problem for problem in play(scenario)[1])


def test_an_output_that_fails_says_so(system: SoundSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(samples: object, rate: int) -> None:
        raise PortAudioError("no output device")

    monkeypatch.setattr(system, "play", fail)

    async def scenario(check: MicrophoneCheck) -> None:
        await check.listen(None)
        await until(lambda: bool(system.streams))
        check.record()
        for _ in range(5):
            system.streams[0].feed(0.25)
        await until(lambda: check.state == RECORDED)
        check.play()
        await until(lambda: check.state == RECORDED)

    assert "The recording cannot be played: no output device." in play(scenario)[1]
