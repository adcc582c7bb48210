"""The whole flow without a window: fake engine as a real child, real audio file, plain asyncio."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.controller import NOT_TRANSLATED, Controller, Gap, Recorded, SessionBegan, SessionEnded
from app.engine_client import EngineError
from app.errors import UserError
from app.playback import FileSource
from app.source import Feed, Source, SourceError, SourceReport
from app.status import Phase, Status
from app.subtitles import Line
from engine.alignatt.policy import SUPERSEDED
from engine.messages import Activity, Caption, Configure, Error, Health, Stopped
from engine.mt.remote import OFFLINE
from engine.presets import PresetError
from tests.app.captions import caption
from tests.app.helpers import client, configure, gone, tone, until


class Memory:
    """A recorder that keeps everything."""

    def __init__(self) -> None:
        self.events: list[Recorded] = []

    def event(self, event: Recorded) -> None:
        self.events.append(event)

    @property
    def stable(self) -> str:
        """The stable text of the last caption of each utterance."""
        last = {e.utterance_id: e.stable for e in self.events if isinstance(e, Caption)}
        return " ".join(last.values())


def play(
    make_source: Callable[[], Source],
    scenario: Callable[[Controller], Awaitable[None]],
    recorders: Sequence[Any] = (),
    **script: Any,
) -> Controller:
    """Run a scenario on a new controller and close it, whatever happens."""

    async def run() -> Controller:
        controller = Controller(configure(**script), make_source, recorders=recorders, engine=client(quiet_s=20))
        try:
            await scenario(controller)
        finally:
            pid = controller.engine.pid
            await controller.close()
            assert pid is None or gone(pid)
            assert controller.status.phase is Phase.OFF
        return controller

    return asyncio.run(run())


def test_a_file_is_subtitled_and_recorded_to_its_end(tmp_path: Path) -> None:
    path, memory, phases = tone(tmp_path / "talk.wav", 6.0), Memory(), []

    async def scenario(controller: Controller) -> None:
        controller.changed.subscribe(lambda status: phases.append(status.phase))
        await controller.start()
        ended = await controller.finished()
        assert ended is not None
        assert ended.reason == ""
        assert ended.audio_s == pytest.approx(6.0)
        assert controller.status.phase is Phase.READY
        assert "".join(line.stable + line.held for line in controller.subtitles.lines[-1:]) in memory.stable

    play(lambda: FileSource(path, fast=True), scenario, [memory])
    order = [Phase.OFF, Phase.LOADING, Phase.READY, Phase.LISTENING, Phase.STOPPING]
    assert list(dict.fromkeys(phases)) == order
    assert phases[-1] is Phase.OFF
    began, stopped, ended = memory.events[0], memory.events[-2], memory.events[-1]
    assert isinstance(began, SessionBegan)
    assert began.source_name == "talk.wav"
    assert began.info["model"] == "fake"
    assert began.quality == "demo quality"
    assert isinstance(stopped, Stopped)
    assert isinstance(ended, SessionEnded)
    assert ended.session_id == began.session_id == stopped.session_id
    assert memory.stable.startswith("Guten Morgen und herzlich willkommen zu diesem Vortrag")


def test_stop_in_the_middle_keeps_the_last_words(tmp_path: Path) -> None:
    path, memory = tone(tmp_path / "talk.wav", 60.0), Memory()

    async def scenario(controller: Controller) -> None:
        await controller.start()
        await until(lambda: controller.subtitles.lines != ())
        ended = await controller.stop()
        assert ended is not None
        assert ended.reason == ""
        assert isinstance(memory.events[-1], SessionEnded)
        assert controller.subtitles.lines[-1].final
        await controller.start()  # and once more, in the same engine
        assert controller.status.phase is Phase.LISTENING
        await controller.stop()

    play(lambda: FileSource(path), scenario, [memory])
    assert [type(e) for e in memory.events].count(SessionBegan) == 2


def test_the_death_of_the_engine_ends_the_session_and_restart_begins_another(tmp_path: Path) -> None:
    path, memory = tone(tmp_path / "talk.wav", 60.0), Memory()

    async def scenario(controller: Controller) -> None:
        await controller.start()
        await until(lambda: memory.stable != "")
        pid = controller.engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        ended = await controller.finished()
        assert ended is not None
        assert "SIGKILL" in ended.reason
        assert controller.status.phase is Phase.ENGINE_STOPPED
        assert controller.status.can_restart
        assert "SIGKILL" in controller.status.line
        shown = controller.subtitles.lines
        assert shown
        assert not any(line.held for line in shown), "nothing will come of what was held"
        kept = len(memory.events)
        await controller.restart()
        assert controller.status.phase is Phase.LISTENING
        await until(lambda: len(controller.subtitles.lines) > len(shown))
        assert controller.subtitles.lines[: len(shown)] == shown
        assert isinstance(memory.events[kept], SessionBegan)

    controller = play(lambda: FileSource(path), scenario, [memory])
    assert controller.subtitles.violations == 0


def test_a_violation_reaches_neither_view_nor_recorder(tmp_path: Path) -> None:
    path, memory, seen = tone(tmp_path / "talk.wav", 3.0), Memory(), list[Line | None]()

    async def scenario(controller: Controller) -> None:
        controller.subtitles.changed.subscribe(seen.append)
        await controller.start()
        await controller.finished()

    controller = play(lambda: FileSource(path, fast=True), scenario, [memory], violate_at=3)
    assert controller.subtitles.violations == 1
    assert "Ganz anders" not in [line.stable for line in seen if line]
    assert "Ganz anders" not in [e.stable for e in memory.events if isinstance(e, Caption)]


def test_a_wrong_file_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    async def scenario(controller: Controller) -> None:
        with pytest.raises(SourceError, match="There is no file"):
            await controller.start()
        assert controller.engine.pid is None
        assert controller.status.phase is Phase.FAILED
        assert "There is no file" in controller.status.line

    play(lambda: FileSource(tmp_path / "none.wav"), scenario)


def test_a_load_that_fails_is_shown_and_can_be_tried_again(tmp_path: Path) -> None:
    path = tone(tmp_path / "talk.wav", 1.0)

    async def scenario(controller: Controller) -> None:
        with pytest.raises(EngineError, match="damaged"):
            await controller.start()
        assert controller.status.phase is Phase.FAILED
        controller.configure = configure()
        await controller.start()
        assert (await controller.finished()) is not None

    play(lambda: FileSource(path, fast=True), scenario, load="fail")


@pytest.mark.parametrize("load", ["die", "fatal"])
def test_death_while_loading_offers_a_restart(tmp_path: Path, load: str) -> None:
    path = tone(tmp_path / "talk.wav", 1.0)

    async def scenario(controller: Controller) -> None:
        with pytest.raises(EngineError):
            await controller.start()
        assert controller.status.can_restart
        controller.configure = configure()
        await controller.restart()
        assert (await controller.finished()) is not None

    play(lambda: FileSource(path, fast=True), scenario, load=load)


def test_stop_while_loading_cancels_the_start(tmp_path: Path) -> None:
    path = tone(tmp_path / "talk.wav", 1.0)

    async def scenario(controller: Controller) -> None:
        starting = asyncio.create_task(controller.start())
        await until(lambda: controller.status.phase is Phase.LOADING)
        await controller.stop()
        await starting
        assert controller.status.phase is Phase.READY
        await controller.start()
        assert controller.status.phase is Phase.LISTENING

    play(lambda: FileSource(path), scenario, load_s=0.5)


def test_closing_while_loading_leaves_no_process(tmp_path: Path) -> None:
    path = tone(tmp_path / "talk.wav", 1.0)

    async def run() -> None:
        controller = Controller(configure(load="hang"), lambda: FileSource(path), engine=client(leave_s=0.2))
        starting = asyncio.create_task(controller.start())
        await until(lambda: controller.status.progress not in (None, 0.0))
        pid = controller.engine.pid
        assert pid is not None
        await controller.close()
        assert gone(pid)
        with pytest.raises(EngineError):
            await starting

    asyncio.run(run())


class Losing:
    """A source that is lost after its first block, with a gap in front of it."""

    name = "a microphone"
    live = True

    def check(self) -> None:
        pass

    async def run(self, feed: Feed) -> None:
        feed.send(np.zeros((1600, 1), np.float32), 16_000, 0.0)
        feed.send(np.full((1600, 1), 0.5, np.float32), 16_000, 3.0)
        raise SourceError("The microphone 'X' was disconnected; connect it and start again.")


def test_a_lost_microphone_ends_the_session_in_good_order() -> None:
    memory, levels = Memory(), list[float]()

    async def scenario(controller: Controller) -> None:
        controller.level.subscribe(levels.append)
        await controller.start()
        ended = await controller.finished()
        assert ended is not None
        assert "disconnected" in ended.reason
        assert ended.audio_s == pytest.approx(3.1)
        assert controller.status.phase is Phase.SOURCE_LOST
        assert "disconnected" in controller.status.line

    play(Losing, scenario, [memory])
    assert Gap(0.1, 3.0) in memory.events
    assert levels == [0.0, 0.5, 0.0]
    assert any(isinstance(e, Stopped) for e in memory.events), "what was heard was finalised"


def test_a_microphone_that_is_looked_for_leaves_no_sentence_open() -> None:
    memory = Memory()

    class Silent(Losing):
        async def run(self, feed: Feed) -> None:
            feed.send(np.full((16_000, 1), 0.5, np.float32), 16_000, 0.0)
            feed.reports.emit(SourceReport("a microphone"))
            await until(lambda: any(isinstance(e, Caption) for e in memory.events))
            for _ in range(2):
                feed.reports.emit(SourceReport("a microphone", "It is looked for.", lost=True))
            while not feed.stopped:
                await feed.pause(60)

    def finals() -> list[Caption]:
        return [e for e in memory.events if isinstance(e, Caption) and e.final]

    async def scenario(controller: Controller) -> None:
        await controller.start()
        await until(lambda: bool(finals()))
        assert controller.status.lost
        await controller.stop()

    play(Silent, scenario, [memory])
    assert [e.utterance_id for e in finals()] == [0], "once for each loss"


def test_a_lost_microphone_is_shown_also_when_the_engine_takes_no_commands() -> None:
    class Lost(Losing):
        async def run(self, feed: Feed) -> None:
            feed.reports.emit(SourceReport("a microphone", "It is looked for.", lost=True))
            while not feed.stopped:
                await feed.pause(60)

    async def scenario(controller: Controller) -> None:
        def refuse() -> None:
            raise EngineError("The engine takes no commands any more.")

        controller.engine.flush = refuse  # type: ignore[method-assign]
        await controller.start()
        await until(lambda: controller.status.lost)
        assert controller.status.notices == ("It is looked for.",)
        await controller.stop()

    play(Lost, scenario)


def test_a_fault_in_a_source_does_not_cost_what_was_said(tmp_path: Path) -> None:
    memory = Memory()

    class Faulty(Losing):
        async def run(self, feed: Feed) -> None:
            raise ZeroDivisionError("a bug")

    async def scenario(controller: Controller) -> None:
        for _ in range(2):  # the engine is free for the next session
            await controller.start()
            ended = await controller.finished()
            assert ended is not None
            assert "ZeroDivisionError" in ended.reason

    play(Faulty, scenario, [memory])
    assert [type(e) for e in memory.events].count(SessionEnded) == 2


def test_a_recorder_that_cannot_write_is_shown_and_does_not_stop_the_session(tmp_path: Path) -> None:
    path, memory, notices = tone(tmp_path / "talk.wav", 2.0), Memory(), []

    class Full:
        def event(self, event: Recorded) -> None:
            raise OSError(28, "No space left on device")

    async def scenario(controller: Controller) -> None:
        controller.changed.subscribe(lambda status: notices.append(status.notice))
        await controller.start()
        await controller.finished()

    controller = play(lambda: FileSource(path, fast=True), scenario, [Full(), memory])
    assert controller.problems == ["The transcript cannot be written: No space left on device."]
    assert controller.problems[0] in notices
    assert memory.stable


def test_a_fault_in_a_recorder_costs_neither_the_others_nor_the_end(tmp_path: Path) -> None:
    path, memory = tone(tmp_path / "talk.wav", 1.0), Memory()

    class Faulty:
        def event(self, event: Recorded) -> None:
            raise ZeroDivisionError("a bug")

    async def scenario(controller: Controller) -> None:
        await controller.start()
        assert await controller.finished() is not None
        assert controller.status.phase is Phase.READY

    controller = play(lambda: FileSource(path, fast=True), scenario, [Faulty(), memory])
    assert len(controller.problems) == 1
    assert "ZeroDivisionError" in controller.problems[0]
    assert memory.stable
    assert isinstance(memory.events[-1], SessionEnded)


def test_what_is_not_well_is_noticed(tmp_path: Path) -> None:
    path, notices = tone(tmp_path / "talk.wav", 2.0), []

    async def scenario(controller: Controller) -> None:
        controller.changed.subscribe(lambda status: notices.append(status.notice))
        await controller.start()
        ended = await controller.finished()
        assert ended is not None
        assert ended.reason == ""

    play(lambda: FileSource(path, fast=True), scenario, error_at=2)
    assert "One update failed and was left out." in notices
    assert "Attention rows are missing; text is released more slowly." in notices


def test_an_error_of_a_moment_goes_and_what_lasts_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.notices.MOMENT_S", 0.05)
    path = tone(tmp_path / "talk.wav", 2.0)

    async def scenario(controller: Controller) -> None:
        await controller.start()
        await controller.finished()
        lasting = "Attention rows are missing; text is released more slowly."
        await until(lambda: controller.status.notices == (lasting,))

    play(lambda: FileSource(path, fast=True), scenario, error_at=2)


def test_a_translation_that_failed_is_said_until_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.notices.MOMENT_S", 0.05)
    failed = Error("translation_failed", "The model is out of order.")

    async def scenario(controller: Controller) -> None:
        await controller.start()
        say = controller.engine.events.emit
        say(failed)
        say(replace(caption(0, "", "Good morning"), reason="error"))
        say(Activity(3.0, 3.0, speech=True, lag_s=0.0))
        await asyncio.sleep(0.2)
        assert controller.status.notices == (failed.message,)
        say(caption(0, "Guten", "Good morning"))
        await until(lambda: controller.status.notices == ())

    play(Endless, scenario)


def test_captions_without_a_translation_are_known_by_the_engine_s_words() -> None:
    assert {OFFLINE, SUPERSEDED} < set(NOT_TRANSLATED)


def test_what_is_worth_knowing_is_shown_once_and_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.notices.MOMENT_S", 0.05)
    memory, note = Memory(), Health("heads", "note", "The shared heads are used.")

    async def scenario(controller: Controller) -> None:
        await controller.start()
        controller.engine.events.emit(note)
        assert controller.status.notices == (note.text,)
        await until(lambda: controller.status.notices == ())

    play(Endless, scenario, [memory])
    assert note in memory.events


def test_a_session_that_cannot_begin_is_over_at_once_and_says_why() -> None:
    async def scenario(controller: Controller) -> None:
        await controller.start()
        ended = await asyncio.wait_for(controller.finished(), 15)  # a stop that is not answered takes 20 s here
        assert ended is not None
        assert ended.reason == "The server does not answer."
        assert controller.status.phase is Phase.FAILED
        assert controller.status.line == "The server does not answer."
        assert not controller.status.wanted
        assert controller.engine.pid is not None, "the engine lives on"

    play(Endless, scenario, refuse=True)


class Endless(Losing):
    """A microphone that is fine and hears nothing."""

    async def run(self, feed: Feed) -> None:
        while not feed.stopped:
            await feed.pause(0.05)


def test_a_microphone_chosen_while_the_models_load_is_the_one_that_is_heard() -> None:
    class Other(Endless):
        name = "another microphone"

    async def scenario(controller: Controller) -> None:
        starting = asyncio.create_task(controller.start())
        await until(lambda: controller.status.phase is Phase.LOADING)
        await controller.use_source(Other)
        await starting
        assert controller.status.source == "another microphone"

    play(Endless, scenario, load_s=0.5)


def test_what_was_not_well_in_one_session_is_not_said_in_the_next(tmp_path: Path) -> None:
    path, notices = tone(tmp_path / "talk.wav", 1.0), []

    async def scenario(controller: Controller) -> None:
        await controller.start()
        await controller.finished()
        assert controller.status.notice
        await controller.use_source(Endless)
        await controller.start()
        controller.changed.subscribe(lambda status: notices.append(status.notice))
        await controller.stop()
        assert notices
        assert not any(notices)

    play(lambda: FileSource(path, fast=True), scenario, error_at=2)


def test_unknown_presets_and_languages_are_refused_at_once() -> None:
    with pytest.raises(PresetError, match="no preset 'nope'"):
        Controller(Configure("nope", "en", "de"), Losing)
    with pytest.raises(PresetError, match="does not translate en-xx"):
        Controller(Configure("laptop", "en", "xx"), Losing)


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (Status(), "Off"),
        (Status(Phase.LOADING, "recogniser", 0.5), "Loading 50%: recogniser"),
        (Status(Phase.READY), "Ready"),
        (Status(Phase.LISTENING), "Listening"),
        (Status(Phase.LISTENING, speech=True), "Speech"),
        (Status(Phase.LISTENING, speech=True, lag_s=4.23), "4.2 s behind"),
        (Status(Phase.STOPPING), "Finishing the last words"),
        (Status(Phase.ENGINE_STOPPED, "The engine crashed."), "The engine crashed."),
    ],
)
def test_every_phase_has_its_line(status: Status, line: str) -> None:
    assert status.line == line


def test_errors_of_the_app_share_one_base() -> None:
    assert issubclass(SourceError, UserError)
    assert issubclass(EngineError, UserError)
