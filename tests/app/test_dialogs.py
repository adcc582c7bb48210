"""The window with its dialogs: fake engine as a real child, fake sound system, real journals, Qt without a display."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import qasync
from PySide6.QtWidgets import QApplication

from app.files import sessions_folder, settings_file
from app.main import Main
from app.options import RunOptions
from app.session_record import read_session
from app.settings import Settings, SettingsStore, Speed, load_settings
from app.status import Phase
from app.transcript import Transcript
from tests.app.captions import BEGAN, caption
from tests.app.fake_sounddevice import SoundSystem, Stream, device
from tests.app.helpers import client, tone, until

pytestmark = pytest.mark.usefixtures("home", "qapp", "system")
LICENCE = "Gemma Terms of Use"


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> SoundSystem:
    fake = SoundSystem([device("Array"), device("Headset", channels=1, rate=16_000.0)], default=0)
    monkeypatch.setitem(sys.modules, "sounddevice", fake)
    return fake


def play(
    scenario: Callable[[Main], Awaitable[None]], options: RunOptions | None = None, settings: Settings | None = None
) -> Main:
    """The program with a person who does `scenario`; everything is closed afterwards."""

    async def run() -> Main:
        store = SettingsStore(settings or Settings(licences=(LICENCE,)), settings_file())
        wanted = options or RunOptions(microphone_required=False)
        main = Main(wanted, client(leave_s=2.0), store)
        running = asyncio.ensure_future(main.run())
        try:
            await until(main.window.isVisible)
            await scenario(main)
        finally:
            main.window.close()
            await asyncio.wait_for(running, 60)
        return main

    with qasync.QEventLoop(QApplication.instance()) as loop:
        done: Main = loop.run_until_complete(run())
    left = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    assert left == []
    return done


def stream(system: SoundSystem) -> Stream | None:
    return next((s for s in reversed(system.streams) if not s.closed), None)


def test_the_first_start_asks_and_two_clicks_begin_a_session(system: SoundSystem) -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.dialogs.presets is not None and main.dialogs.presets.isVisible())
        dialog = main.dialogs.presets
        assert dialog is not None
        assert main.controller.status.phase is not Phase.LISTENING
        dialog.boxes[LICENCE].click()
        dialog.start.click()
        await until(lambda: main.controller.status.phase is Phase.LISTENING and stream(system) is not None)

    play(person, settings=Settings())
    kept, notice = load_settings(settings_file())
    assert (kept.licences, kept.preset, notice) == ((LICENCE,), "laptop", None)


def test_the_start_button_asks_too_as_long_as_nothing_is_accepted() -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.dialogs.presets is not None and main.dialogs.presets.isVisible())
        assert main.dialogs.presets is not None
        main.dialogs.presets.reject()
        main.window.bar.button.click()
        await until(main.dialogs.presets.isVisible)
        await until(lambda: main.controller.machine is not None)
        assert main.controller.status.phase is not Phase.LISTENING

    play(person, settings=Settings())


def test_another_language_while_a_session_runs_begins_a_new_one(system: SoundSystem) -> None:
    async def person(main: Main) -> None:
        await main.controller.start()
        await until(lambda: stream(system) is not None)
        main.window.open_presets.emit()
        dialog = main.dialogs.presets
        assert dialog is not None
        dialog.target.setCurrentIndex(dialog.target.findData("fr"))
        dialog.use.click()
        await until(lambda: main.controller.configure.target_lang == "fr")
        await until(lambda: main.controller.status.phase is Phase.LISTENING)
        assert "French" in main.window.windowTitle()

    play(person)
    pairs = {read_session(path).target_lang for path in sessions_folder().glob("*.jsonl")}
    assert pairs == {"de", "fr"}


def test_a_choice_during_loading_takes_its_place() -> None:
    async def person(main: Main) -> None:
        await until(lambda: main.controller.status.phase is Phase.LOADING)
        main.window.open_presets.emit()
        dialog = main.dialogs.presets
        assert dialog is not None
        dialog.target.setCurrentIndex(dialog.target.findData("it"))
        dialog.context.setPlainText("{}")
        dialog.use.click()
        await until(lambda: main.controller.configure.target_lang == "it")
        await until(lambda: main.controller.status.phase is Phase.READY)

    slow = RunOptions(microphone_required=False, context=json.dumps({"load_s": 30}))
    play(person, slow)


def test_a_microphone_is_chosen_heard_and_remembered(system: SoundSystem) -> None:
    async def person(main: Main) -> None:
        main.window.open_microphones.emit()
        await until(lambda: main.dialogs.microphones is not None and main.dialogs.microphones.isVisible())
        dialog = main.dialogs.microphones
        assert dialog is not None
        assert dialog.list.count() == 3
        await until(lambda: stream(system) is not None)
        dialog.list.setCurrentRow(2)
        await until(lambda: (s := stream(system)) is not None and s.how["device"] == 1)
        open_stream = stream(system)
        assert open_stream is not None
        open_stream.feed(0.5)
        await until(lambda: dialog.words.text() in ("good", "too loud"))
        dialog.use.click()
        await until(lambda: main.settings.value.microphone == "Headset (ALSA)")
        await until(lambda: stream(system) is None)
        await main.controller.start()
        await until(lambda: (s := stream(system)) is not None and s.how["device"] == 1)
        assert main.controller.status.source == "Headset"

    play(person)
    assert load_settings(settings_file())[0].microphone == "Headset (ALSA)"


def test_the_microphone_is_changed_in_the_middle_of_a_session(system: SoundSystem) -> None:
    async def person(main: Main) -> None:
        await main.controller.start()
        await until(lambda: stream(system) is not None)
        main.window.open_microphones.emit()
        await until(lambda: main.dialogs.microphones is not None and main.dialogs.microphones.isVisible())
        dialog = main.dialogs.microphones
        assert dialog is not None
        dialog.list.setCurrentRow(2)
        dialog.use.click()
        await until(lambda: main.controller.status.phase is Phase.LISTENING and bool(system.streams))
        await until(lambda: main.controller.status.source == "Headset")

    play(person)
    assert len(list(sessions_folder().glob("*.jsonl"))) == 2


def test_a_lost_microphone_is_in_the_window_and_in_the_journal(system: SoundSystem) -> None:
    async def person(main: Main) -> None:
        await main.controller.start()
        await until(lambda: stream(system) is not None)
        first = stream(system)
        assert first is not None
        first.feed(0.1)
        system.plugged = [device("Headset", channels=1, rate=16_000.0)]
        await asyncio.sleep(0.2)
        first.unplug()
        await until(lambda: "'Headset' is used" in main.controller.status.notice)
        second = stream(system)
        assert second is not None
        second.feed(0.1)
        await until(lambda: main.controller.status.audio_s > 0.2)
        assert main.controller.status.phase is Phase.LISTENING

    play(person)
    (path,) = sessions_folder().glob("*.jsonl")
    record = read_session(path)
    assert record.ended
    assert len(record.gaps) == 1


def test_the_transcript_grows_is_marked_and_exported_while_it_runs(tmp_path: Path) -> None:
    target = tmp_path / "Ausgabe für alle" / "größe.vtt"

    async def person(main: Main) -> None:
        main.window.open_transcript.emit()
        await until(lambda: main.transcripts.window is not None)
        window = main.transcripts.window
        assert window is not None
        await until(lambda: window.table.rowCount() >= 2)
        window.view.go_to(0)
        window.toggle_mark()
        assert window.reading.marked(0)
        window.export.emit()
        await until(lambda: main.transcripts.export_dialog is not None and main.transcripts.export_dialog.isVisible())
        dialog = main.transcripts.export_dialog
        assert dialog is not None
        assert "is running" in dialog.about.text()
        dialog.format.setCurrentIndex(dialog.format.findData(".vtt"))
        dialog.write_to(target)
        await until(target.exists)
        await until(lambda: not dialog.isVisible())
        window.close()
        assert main.transcripts.window is None

    play(person, RunOptions(file=tone(tmp_path / "talk.wav", 60), autostart=True))
    assert target.read_text(encoding="utf-8").startswith("WEBVTT")
    assert load_settings(settings_file())[0].export.format == ".vtt"
    (path,) = sessions_folder().glob("*.jsonl")
    assert read_session(path).bookmarks == (0,)


def test_an_export_that_fails_says_so_and_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_session(ended=True)

    async def person(main: Main) -> None:
        main.window.open_export.emit()
        await until(lambda: main.transcripts.export_dialog is not None and main.transcripts.export_dialog.isVisible())
        dialog = main.transcripts.export_dialog
        assert dialog is not None
        assert "Eins" in dialog.preview.toPlainText()
        dialog.write_to(tmp_path / "file" / "x.srt")
        await until(lambda: "Cannot write" in dialog.outcome.text())

    play(person)


def test_an_interrupted_session_is_offered_and_recovered() -> None:
    path = write_session(ended=False)

    async def person(main: Main) -> None:
        await until(lambda: main.transcripts.recovery is not None and main.transcripts.recovery.isVisible())
        assert main.transcripts.recovery is not None
        main.transcripts.recovery.take.click()
        await until(lambda: main.transcripts.window is not None and main.transcripts.window.table.rowCount() == 1)

    play(person)
    assert read_session(path).ended


def test_old_sessions_are_shown_marked_and_deleted() -> None:
    path = write_session(ended=True)

    async def person(main: Main) -> None:
        main.window.open_transcript.emit()
        await until(lambda: main.transcripts.window is not None and main.transcripts.window.table.rowCount() == 1)
        window = main.transcripts.window
        assert window is not None
        window.view.go_to(0)
        window.toggle_mark()
        await until(lambda: window.reading.marked(0))
        assert read_session(path).bookmarks == (0,)
        window.delete.emit([path])
        await until(lambda: window.table.rowCount() == 0)
        assert not path.exists()
        window.delete.emit([path])
        await until(lambda: "cannot be deleted" in window.state.text())

    play(person)


def test_settings_are_changed_and_put_back(tmp_path: Path) -> None:
    model = tmp_path / "own.gguf"
    model.touch()

    async def person(main: Main) -> None:
        await until(lambda: main.controller.status.phase is Phase.READY)
        main.window.open_settings.emit()
        dialog = main.dialogs.settings_dialog
        assert dialog is not None
        dialog.changed.emit({"models": {"translator.model": str(model)}})
        await until(lambda: main.controller.configure.overrides == {"translator.model": str(model)})
        await until(lambda: main.controller.status.phase is Phase.READY)
        dialog.reset.emit()
        await until(lambda: main.controller.configure.overrides == {})
        assert main.settings.value == Settings()

    play(person)
    assert load_settings(settings_file())[0] == Settings()


def test_settings_that_cannot_be_saved_are_said() -> None:
    settings_file().parent.mkdir(parents=True)
    settings_file().mkdir()

    async def person(main: Main) -> None:
        main.window.open_settings.emit()
        main.dialogs.keep_speed("laptop", Speed(real_time_factor=0.5, lag_s=1.0))
        assert "cannot be saved" in main.controller.status.notice
        assert main.dialogs.settings_dialog is not None
        assert main.dialogs.settings_dialog.problem.isVisible()

    play(person)


def write_session(*, ended: bool) -> Path:
    """A journal of one utterance."""
    transcript = Transcript(sessions_folder())
    transcript.event(replace(BEGAN, began_unix_s=1.0))
    transcript.event(caption(0, "Eins", "One", final=True))
    assert transcript.path is not None
    text = transcript.path.read_bytes()
    transcript.close()
    if not ended:
        transcript.path.write_bytes(text)
    return transcript.path
