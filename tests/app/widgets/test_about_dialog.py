"""About: what it says of the program, and that nobody's licence is missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.i18n import use_language
from app.version import program_version
from app.widgets.about_dialog import AboutDialog
from engine.presets import load_preset, preset_ids
from tests.app.leaks import throw_away
from tests.app.widgets.conftest import Open


@pytest.fixture
def dialog(qtbot: QtBot) -> Iterator[AboutDialog]:
    made = AboutDialog()
    made.show()
    qtbot.waitExposed(made)
    yield made
    throw_away(made)


def test_version_licence_and_notices(dialog: AboutDialog) -> None:
    assert f"surtitle {program_version()}" in dialog.version.text()
    assert "Apache License 2.0" in dialog.text.text()
    notices = dialog.notices.toPlainText()
    for expected in (
        "Gemma Terms of Use",
        "Whisper",
        "MIT",
        "Silero",
        "Qt",
        "LGPL",
        "llama.cpp",
        "CC BY 4.0",
        "AlignAtt4LLM",
    ):
        assert expected in notices
    for preset in map(load_preset, preset_ids()):
        assert all(licence in notices for licence in preset.needs.licences)


@pytest.mark.usefixtures("english")
def test_it_follows_the_language(dialog: AboutDialog, qtbot: QtBot) -> None:
    use_language("de")
    qtbot.waitUntil(lambda: dialog.windowTitle() == "Über Surtitle", timeout=20_000)


def test_the_window_asks_for_it(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    with qtbot.waitSignal(window.open_about, timeout=20_000):
        window.actions_["about"].trigger()
