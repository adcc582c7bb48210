"""A microphone that is lost: the session goes on, on its own clock, with another one, and says so."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from app import capture_stream, microphone
from app.microphone import MicrophoneSource
from app.source import Feed, SourceError, SourceReport
from engine.messages import Audio
from tests.app.fake_sounddevice import SoundSystem, Stream, device
from tests.app.helpers import until

ARRAY, HEADSET = device("Array", rate=44_100.0), device("Headset", channels=1, rate=16_000.0)
MONITOR = device("Monitor of Speakers")


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SoundSystem:
    """Two microphones and a monitor; patience is short, so that tests are."""
    fake = SoundSystem([ARRAY, HEADSET, MONITOR], default=0)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    monkeypatch.setattr(microphone, "DELAYS_S", (0.0, 0.05, 0.05))
    monkeypatch.setattr(microphone, "RETURN_S", 0.05)
    monkeypatch.setattr(microphone, "LOST_CLOSE_S", 0.05)
    monkeypatch.setattr(microphone, "PROVE_S", 0.5)
    monkeypatch.setattr(microphone, "fingerprint", lambda: "")
    return fake


@dataclass
class Session:
    """A source that runs, and what it has said and sent."""

    system: SoundSystem
    source: MicrophoneSource
    feed: Feed
    sent: list[Audio] = field(default_factory=list)
    gaps: list[tuple[float, float]] = field(default_factory=list)
    reports: list[SourceReport] = field(default_factory=list)

    def open(self, name: str) -> Stream | None:
        """The newest open stream of a device."""
        names = {index: device["name"] for index, device in enumerate(self.system.devices)}
        found = [s for s in self.system.streams if not s.closed and names.get(s.how["device"]) == name]
        return found[-1] if found else None

    @property
    def said(self) -> str:
        return self.reports[-1].trouble if self.reports else ""


def play(
    system: SoundSystem,
    scenario: Callable[[Session], Awaitable[None]],
    wanted: str | None = None,
    required: bool = False,
) -> Session:
    async def run() -> Session:
        session = Session(system, MicrophoneSource(wanted, required=required), None)  # type: ignore[arg-type]
        session.feed = Feed(session.sent.append, lambda *gap: session.gaps.append(gap))
        session.feed.reports.subscribe(session.reports.append)
        running = asyncio.create_task(session.source.run(session.feed))
        try:
            await until(lambda: any(not s.closed for s in system.streams) or running.done())
            if not running.done():
                await scenario(session)
        finally:
            session.feed.stop()
            await asyncio.wait_for(running, 30)
        return session

    return asyncio.run(run())


def test_an_unplugged_microphone_is_replaced_and_the_gap_is_kept(system: SoundSystem) -> None:
    async def scenario(session: Session) -> None:
        first = session.open("Array")
        assert first is not None
        first.feed(0.1)
        await until(lambda: len(session.sent) == 1)
        system.plugged = [HEADSET, MONITOR]
        system.default.device = (0, -1)
        await asyncio.sleep(0.3)  # time passes without sound
        first.unplug()
        await until(lambda: session.open("Headset") is not None)
        other = session.open("Headset")
        assert other is not None
        other.feed(0.2)
        await until(lambda: len(session.sent) == 2)

    session = play(system, scenario)
    assert "'Array' was disconnected: 'Headset' is used until it is back" in session.said
    assert not session.reports[-1].lost
    assert any(report.lost for report in session.reports), "meanwhile it was said that nothing is heard"
    first, second = session.sent
    assert (first.start_s, first.sample_rate) == (0.0, 44_100)
    assert second.sample_rate == 16_000
    assert second.start_s >= 0.3, "the lost time is kept on the clock"
    assert session.gaps == [(pytest.approx(0.05, abs=0.01), second.start_s)]


def test_a_silent_stream_is_opened_again(system: SoundSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_stream, "SILENT_S", 0.3)

    async def scenario(session: Session) -> None:
        first = session.open("Array")
        assert first is not None
        first.feed(0.1)
        await until(lambda: first.closed and session.open("Array") is not None)
        again = session.open("Array")
        assert again is not None
        again.feed(0.1)
        await until(lambda: len(session.sent) == 2)

    session = play(system, scenario)
    assert "went silent" in " ".join(report.trouble for report in session.reports)
    assert not session.said, "all is well again"


def test_with_no_microphone_left_the_session_waits_and_says_so(system: SoundSystem) -> None:
    async def scenario(session: Session) -> None:
        first = session.open("Array")
        assert first is not None
        system.plugged = [MONITOR]
        system.default.device = (-1, -1)
        first.unplug()
        await until(lambda: "the session goes on" in session.said)
        assert session.reports[-1].lost
        assert session.open("Monitor of Speakers") is None, "what the machine plays is nobody's voice"
        system.plugged = [ARRAY, MONITOR]
        await until(lambda: session.open("Array") is not None)
        stream = session.open("Array")
        assert stream is not None
        stream.feed(0.5)
        await until(lambda: len(session.sent) == 1)

    session = play(system, scenario)
    assert session.said == ""
    assert session.reports[-1].name == "Array"


def test_a_stop_ends_the_search(system: SoundSystem) -> None:
    async def scenario(session: Session) -> None:
        first = session.open("Array")
        assert first is not None
        system.plugged = []
        first.unplug()
        await until(lambda: bool(session.reports) and session.reports[-1].lost)

    play(system, scenario)  # which stops, and waits for the end


def test_a_lost_device_that_never_closes_does_not_keep_the_session(
    system: SoundSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capture_stream, "TURN_S", 0.05)

    async def scenario(session: Session) -> None:
        first = session.open("Array")
        assert first is not None
        first.hang.clear()
        first.unplug()
        try:
            await until(lambda: "it is looked for" in session.said or "goes on" in session.said)
            assert system.rescans == 0, "a rescan would end the stream under its own call"
        finally:
            first.hang.set()
        await until(lambda: len([s for s in system.streams if not s.closed]) == 1)

    play(system, scenario)


def test_the_wanted_microphone_is_taken_again_when_it_delivers(system: SoundSystem) -> None:
    system.broken = {"Headset"}

    async def scenario(session: Session) -> None:
        other = session.open("Array")
        assert other is not None
        other.feed(0.1)
        assert "'Headset' cannot be opened" in session.said
        assert "'Array' is used until it is back" in session.said
        system.broken.clear()

        def delivers() -> bool:
            other.feed(0.1)
            wanted = session.open("Headset")
            if wanted is not None:
                wanted.feed(0.2)
            return other.closed and wanted is not None

        await until(delivers)
        wanted = session.open("Headset")
        assert wanted is not None
        wanted.feed(0.3)
        await until(lambda: session.sent[-1].sample_rate == 16_000)

    session = play(system, scenario, wanted="Headset (ALSA)")
    assert session.said == ""
    assert session.source.name == "Headset"
    ends = [audio.start_s for audio in session.sent]
    assert ends == sorted(ends), "the clock never goes back"


def test_a_remembered_microphone_that_is_not_there_is_replaced(system: SoundSystem) -> None:
    async def scenario(session: Session) -> None:
        assert session.open("Array") is not None

    session = play(system, scenario, wanted="Studio (ALSA)")
    assert "'Studio (ALSA)' is not connected: 'Array' is used" in session.said


def test_one_that_was_asked_for_by_name_must_be_there(system: SoundSystem) -> None:
    async def scenario(session: Session) -> None:
        raise AssertionError("nothing is opened")

    with pytest.raises(SourceError, match="no microphone 'Studio'"):
        play(system, scenario, wanted="Studio", required=True)


def test_a_broken_default_falls_back_to_any_other_input(system: SoundSystem) -> None:
    system.broken = {"Array"}

    async def scenario(session: Session) -> None:
        assert session.open("Headset") is not None

    assert "'Array' cannot be opened" in play(system, scenario).said


def test_overflows_are_counted_said_and_forgotten(system: SoundSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microphone, "OVERFLOW_SHOWN_S", 0.2)

    async def scenario(session: Session) -> None:
        stream = session.open("Array")
        assert stream is not None
        stream.feed(0.1)
        stream.feed(0.1, overflow=True)
        await until(lambda: "Sound was lost once" in session.said)
        stream.feed(0.1, overflow=True)
        await until(lambda: "lost 2 times" in session.said)

        def quiet() -> bool:
            stream.feed(0.1)
            return not session.said

        await until(quiet)

    assert play(system, scenario).reports[-1].overflows == 2
