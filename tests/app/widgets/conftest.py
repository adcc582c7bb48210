"""Things that tests of the window use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.i18n import use_language
from app.subtitles import Subtitles
from app.widgets.look import use_theme
from app.widgets.subtitle_window import SubtitleWindow
from app.window_settings import WindowSettings
from tests.app.leaks import throw_away

Open = Callable[..., SubtitleWindow]


@pytest.fixture
def subtitles() -> Subtitles:
    return Subtitles()


@pytest.fixture
def open_window(qtbot: QtBot, subtitles: Subtitles) -> Iterator[Open]:
    """Opens windows with given settings, and closes them after the test."""
    opened: list[SubtitleWindow] = []

    def make(**settings: Any) -> SubtitleWindow:
        window = SubtitleWindow(subtitles, "Surtitle", settings=WindowSettings(**settings))
        opened.append(window)
        window.show()
        qtbot.waitExposed(window)
        window.activateWindow()
        qtbot.waitUntil(window.isActiveWindow, timeout=20_000)
        return window

    yield make
    for window in opened:
        window.detach()
        window.hide()
        throw_away(window)


@pytest.fixture
def english(qapp: QApplication) -> Iterator[None]:
    """The interface is in English and has the system's theme again after the test."""
    yield
    use_language("en")
    use_theme("system")
