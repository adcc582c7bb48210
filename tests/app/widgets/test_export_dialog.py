"""The export dialog: what it offers, shows and asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtWidgets import QFileDialog
from pytestqt.qtbot import QtBot

from app.session_record import SessionRecord
from app.settings import ExportSettings
from app.widgets.export_dialog import ExportDialog
from tests.app.captions import record

TALK = replace(record(("Good morning.", "Guten Morgen <b>.", 0.5, 1.5)), source_lang="en", target_lang="de")


@pytest.fixture
def dialog(qtbot: QtBot) -> Iterator[ExportDialog]:
    made = ExportDialog()
    made.show_session(TALK, ExportSettings())
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.hide()
    made.deleteLater()


def choose(dialog: ExportDialog, suffix: str) -> None:
    dialog.format.setCurrentIndex(dialog.format.findData(suffix))


@pytest.mark.parametrize(
    ("suffix", "shown"),
    [
        (".srt", "00:00:00,500 --> 00:00:01,500"),
        (".vtt", "WEBVTT"),
        (".txt", "Guten Morgen <b>."),
        (".jsonl", '"target"'),
        (".docx", "Guten Morgen <b>."),
    ],
)
def test_the_preview_is_what_will_be_written(suffix: str, shown: str, dialog: ExportDialog) -> None:
    choose(dialog, suffix)
    assert shown in dialog.preview.toPlainText()
    assert dialog.columns.isEnabled() is (suffix in (".srt", ".vtt"))
    assert dialog.mark.isEnabled() is (suffix in (".txt", ".srt", ".vtt"))
    assert dialog.what.isEnabled() is (suffix != ".jsonl")
    assert dialog.note.text()


def test_languages_and_line_length_change_the_preview(dialog: ExportDialog) -> None:
    dialog.what.setCurrentIndex(dialog.what.findData("source"))
    assert "Good morning." in dialog.preview.toPlainText()
    assert "Guten" not in dialog.preview.toPlainText()
    dialog.show_session(record(("x", "Wetter und mehr " * 10, 0, 9)), ExportSettings(columns=80))
    wide = max(map(len, dialog.preview.toPlainText().splitlines()))
    dialog.columns.setValue(20)
    assert max(len(line) for line in dialog.preview.toPlainText().splitlines() if "-->" not in line) <= 20 < wide


@pytest.mark.parametrize(("given", "kept"), [(-5, 20), (20, 20), (80, 80), (10**6, 80)])
def test_the_line_length_stays_in_its_range(given: int, kept: int, dialog: ExportDialog) -> None:
    dialog.columns.setValue(given)
    assert dialog.choices.columns == kept


def test_a_long_session_shows_its_beginning(dialog: ExportDialog) -> None:
    dialog.show_session(record(*(("x", f"Satz {n}.", n, n + 1) for n in range(5000))), ExportSettings(format=".txt"))
    text = dialog.preview.toPlainText()
    assert "Satz 199." in text
    assert "Satz 200." not in text
    assert text.endswith("…")


def test_nothing_said_is_said(dialog: ExportDialog) -> None:
    dialog.show_session(SessionRecord("empty"), ExportSettings())
    assert "Nothing was said" in dialog.preview.toPlainText()
    assert dialog.save.isEnabled()
    dialog.show_session(None, ExportSettings())
    assert not dialog.save.isEnabled()


def test_a_running_an_interrupted_and_a_damaged_session_are_told_apart(dialog: ExportDialog) -> None:
    dialog.show_session(TALK, ExportSettings(), running=True)
    assert "is running" in dialog.about.text()
    dialog.show_session(replace(TALK, ended=False, damaged_lines=2), ExportSettings())
    assert "interrupted" in dialog.about.text()
    assert "2 damaged lines" in dialog.about.text()


def test_the_suffix_is_added_and_the_folder_remembered(dialog: ExportDialog, tmp_path: Path, qtbot: QtBot) -> None:
    folder = tmp_path / "Ordner für Übung"
    with qtbot.waitSignal(dialog.wanted) as heard:
        dialog.write_to(folder / "talk.v2")
    path, choices = heard.args
    assert path == folder / "talk.v2.srt"
    assert choices.folder == str(folder)
    with qtbot.waitSignal(dialog.wanted) as heard:
        dialog.write_to(folder / "talk.SRT")
    assert heard.args[0] == folder / "talk.SRT"


def test_a_failure_stays_open_and_a_success_closes(dialog: ExportDialog) -> None:
    dialog.show_result("Cannot write /x (no space left on device): export it to another place.", good=False)
    assert "no space left" in dialog.outcome.text()
    assert dialog.isVisible()
    dialog.show_result("Wrote /x.", good=True)
    assert not dialog.isVisible()


def test_the_suggested_name_carries_session_and_language(dialog: ExportDialog, tmp_path: Path) -> None:
    dialog.show_session(TALK, ExportSettings(folder=str(tmp_path), format=".vtt"))
    assert dialog.suggested_path() == tmp_path / f"{TALK.session_id}.de.vtt"
    dialog.show_session(TALK, ExportSettings(folder=str(tmp_path / "gone"), what="both"))
    assert dialog.suggested_path().name == f"{TALK.session_id}.srt"


def test_a_place_is_asked_for(dialog: ExportDialog, qtbot: QtBot) -> None:
    dialog.save.click()
    asked = dialog.findChild(QFileDialog)
    assert asked is not None
    assert asked.defaultSuffix() == "srt"
    asked.reject()
