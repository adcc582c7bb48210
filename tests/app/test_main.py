"""The window wired to everything else: fake engine as a real child, real file, Qt's loop without a display."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import qasync
from PySide6.QtWidgets import QApplication

from app.engine_client import EngineClient
from app.files import sessions_folder
from app.main import BAD_INPUT, FAILED, OK, Main, run_window
from app.options import RunOptions
from app.session_record import read_session
from app.status import Phase
from tests.app.fake_engine import TEXT
from tests.app.helpers import client, gone, tone, until

pytestmark = pytest.mark.usefixtures("home", "qapp")


def options(path: Path | None, script: str = "{}", **more: Any) -> RunOptions:
    return RunOptions(file=path, context=script, autostart=True, **more)


def play(wanted: RunOptions, scenario: Callable[[Main], Awaitable[None]], engine: EngineClient | None = None) -> int:
    """The window with a person who does `scenario`; the exit status. No process may be left."""

    async def run() -> int:
        main = Main(wanted, engine or client(leave_s=2.0))
        running = asyncio.ensure_future(main.run())
        pid = None
        try:
            await scenario(main)
            pid = main.controller.engine.pid
        finally:
            main.window.close()
            status = await asyncio.wait_for(running, 60)
        assert pid is None or gone(pid)
        assert not main.window.isVisible()
        return status

    app = QApplication.instance()
    with qasync.QEventLoop(app) as loop:
        status: int = loop.run_until_complete(run())
    return status


def recorded() -> str:
    """The stable text of the newest session on disk."""
    (path,) = sessions_folder().glob("*.jsonl")
    return " ".join(utterance.target for utterance in read_session(path).utterances)


def test_a_file_is_played_exported_and_the_window_leaves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tone(tmp_path / "talk.wav", 4.0), tmp_path / "out.txt"
    assert run_window(options(path, fast=True, exports=(out,)), client()) == OK
    said = TEXT.split()[:13]
    assert recorded().split() == said
    assert out.read_text(encoding="utf-8").split()[: len(said)] == said
    assert "out.txt" in capsys.readouterr().err


def test_the_window_is_there_before_the_models(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(main.window.isVisible)
        assert main.controller.status.phase in (Phase.OFF, Phase.LOADING)
        await until(lambda: main.window.bar.state.text().startswith("Loading"))

    assert play(options(tone(tmp_path / "talk.wav", 60), '{"load_s": 1.0}'), person) == OK


def test_stop_and_start_by_the_button(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.window.view.text() != [])
        main.window.bar.button.click()
        await until(lambda: main.controller.status.phase is Phase.READY)
        shown = main.window.view.text()
        assert shown
        assert main.window.bar.button.text() == "Start"
        main.window.bar.button.click()
        await until(lambda: main.controller.status.phase is Phase.LISTENING)

    assert play(options(tone(tmp_path / "talk.wav", 60)), person) == OK
    assert len(list(sessions_folder().glob("*.jsonl"))) == 2


def test_what_is_on_screen_is_what_is_on_disk(tmp_path: Path) -> None:
    rows: list[str] = []

    async def person(main: Main) -> None:
        main.window.resize(main.window.width(), 700)
        await until(lambda: main.controller.status.audio_s > 3.0)
        main.window.bar.button.click()
        await until(lambda: main.controller.status.phase is Phase.READY)
        rows.extend(main.window.view.text())

    play(options(tone(tmp_path / "talk.wav", 60)), person)
    assert " ".join(rows) == recorded()


def test_a_killed_engine_is_shown_and_the_button_brings_it_back(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.window.view.text() != [])
        pid = main.controller.engine.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await until(lambda: "SIGKILL" in main.window.bar.state.text())
        kept = main.window.view.text()
        assert kept
        assert main.window.bar.again.isVisible()
        await until(lambda: main.controller.engine.pid is None and not main.controller.status.wanted)
        main.window.bar.again.click()
        await until(lambda: main.controller.status.phase is Phase.LISTENING)
        await until(lambda: len(main.controller.subtitles.lines) > 1)

    assert play(options(tone(tmp_path / "talk.wav", 60)), person) == FAILED
    files = sorted(sessions_folder().glob("*.jsonl"))
    assert len(files) == 2
    assert all(read_session(path).has_text for path in files)


def test_a_load_that_fails_stays_on_screen(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(lambda: "weights are damaged" in main.window.bar.state.text())
        await until(lambda: main.window.bar.button.text() == "Start")

    assert play(options(tone(tmp_path / "talk.wav"), '{"load": "fail"}'), person) == FAILED


def test_a_transcript_that_cannot_be_written_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = sessions_folder().parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    assert run_window(options(tone(tmp_path / "talk.wav", 2.0), fast=True), client()) == FAILED
    assert "is incomplete" in capsys.readouterr().err


def test_a_missing_file_stays_on_screen(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(lambda: "There is no file" in main.window.bar.state.text())

    assert play(options(tmp_path / "none.wav"), person) == BAD_INPUT


def test_closing_in_the_middle_of_a_word_keeps_it(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.controller.status.audio_s > 1.0)

    play(options(tone(tmp_path / "talk.wav", 60)), person)
    assert recorded().startswith("Guten Morgen und")
    (path,) = sessions_folder().glob("*.jsonl")
    assert read_session(path).ended


def test_closing_twice_does_not_wait_for_an_engine_that_hangs(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.window.view.text() != [])
        main.window.close()
        await until(lambda: main.controller.status.phase is Phase.STOPPING)
        assert main.window.isVisible(), "it says that it finishes the last words"

    play(options(tone(tmp_path / "talk.wav", 60), '{"on_stop": "hang"}'), person, client(quiet_s=600))
    assert recorded()


def test_an_interrupt_is_a_close(tmp_path: Path) -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.window.view.text() != [])
        os.kill(os.getpid(), signal.SIGINT)
        await until(lambda: not main.window.isVisible())

    assert play(options(tone(tmp_path / "talk.wav", 60)), person) == OK
