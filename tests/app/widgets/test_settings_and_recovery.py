"""The settings dialog, and the one that offers interrupted sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.session_files import SessionSummary
from app.settings import Settings
from app.widgets.recovery_dialog import RecoveryDialog
from app.widgets.settings_dialog import RECOGNISER, TRANSLATOR, SettingsDialog


@pytest.fixture
def dialog(qtbot: QtBot, tmp_path: Path) -> Iterator[SettingsDialog]:
    made = SettingsDialog(Settings(licences=("Gemma Terms of Use",)), tmp_path / "sessions", tmp_path / "s.json")
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.hide()
    made.deleteLater()


def test_own_models_are_told_and_missing_ones_said(dialog: SettingsDialog, qtbot: QtBot, tmp_path: Path) -> None:
    model = tmp_path / "größer.gguf"
    model.touch()
    dialog.paths[TRANSLATOR].setText(f" {model} ")
    with qtbot.waitSignal(dialog.changed) as heard:
        dialog.paths[TRANSLATOR].editingFinished.emit()
    assert heard.args == [{"models": {TRANSLATOR: str(model)}}]
    assert not dialog.model_problem.isVisible()
    dialog.paths[RECOGNISER].setText("/nowhere\x00/x")
    dialog.paths[RECOGNISER].editingFinished.emit()
    assert "There is nothing at" in dialog.model_problem.text()
    dialog.show_settings(Settings(models={TRANSLATOR: "/other"}))
    assert dialog.paths[TRANSLATOR].text() == "/other"
    assert dialog.paths[RECOGNISER].text() == ""


def test_licences_are_shown_and_withdrawn(dialog: SettingsDialog, qtbot: QtBot) -> None:
    assert dialog.licences.text() == "Gemma Terms of Use"
    with qtbot.waitSignal(dialog.changed) as heard:
        dialog.withdraw.click()
    assert heard.args == [{"licences": ()}]
    dialog.show_settings(Settings())
    assert not dialog.withdraw.isEnabled()


def test_a_reset_is_asked_about(dialog: SettingsDialog, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(dialog.reset):
        dialog.restore.click()
    box = dialog.findChild(QMessageBox)
    assert box is not None
    with qtbot.waitSignal(dialog.reset):
        next(button for button in box.buttons() if button.text() == "&Put back").click()


def test_the_other_dialogs_are_reached(dialog: SettingsDialog, qtbot: QtBot) -> None:
    for button, signal in (
        (dialog.presets, dialog.open_presets),
        (dialog.microphone, dialog.open_microphones),
        (dialog.look, dialog.open_look),
    ):
        with qtbot.waitSignal(signal):
            qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def test_what_cannot_be_saved_is_said(dialog: SettingsDialog, tmp_path: Path) -> None:
    assert str(tmp_path / "sessions") in dialog.places.text()
    assert not dialog.problem.isVisible()
    dialog.show_problem("The settings /x cannot be saved (no space left on device).")
    assert "no space left" in dialog.problem.text()
    assert dialog.problem.isVisible()


def test_interrupted_sessions_are_recovered_by_choice(qtbot: QtBot) -> None:
    found = [
        SessionSummary(Path(f"/s/{name}.jsonl"), name, "en", "de", None, 60.0, True, "cut off") for name in ("a", "b")
    ]
    dialog = RecoveryDialog(found)
    dialog.show()
    qtbot.waitExposed(dialog)
    assert dialog.paths == [found[0].path, found[1].path]
    dialog.list.item(0).setCheckState(Qt.CheckState.Unchecked)
    with qtbot.waitSignal(dialog.recover) as heard:
        qtbot.keyClick(dialog, Qt.Key.Key_Return)
    assert heard.args == [[found[1].path]]
    assert not dialog.isVisible()
    dialog.list.item(1).setCheckState(Qt.CheckState.Unchecked)
    assert not dialog.take.isEnabled()
    dialog.deleteLater()
