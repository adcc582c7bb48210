"""The window: what it shows in each state, what it asks for, and that it can be read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLabel, QProgressBar, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.status import Phase, Status
from app.subtitles import Subtitles
from app.widgets.look import CONTRAST, Look, blend, contrast
from app.widgets.subtitle_window import SubtitleWindow
from engine.messages import Caption

REASON = "The engine was killed (SIGKILL), perhaps because memory ran out; restart it to go on."


def caption(uid: int, stable: str, held: str = "", final: bool = False) -> Caption:
    return Caption(uid, stable, held, "", "", None, final, "test", 0.0, 1.0, 1.0, 1.0)


@pytest.fixture
def subtitles() -> Subtitles:
    return Subtitles()


@pytest.fixture
def window(qtbot: QtBot, subtitles: Subtitles) -> Iterator[SubtitleWindow]:
    made = SubtitleWindow(subtitles, "Surtitle: English to German")
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.detach()
    made.hide()
    made.deleteLater()


def colours(widget: QWidget) -> dict[str, int]:
    """How often each colour occurs in the widget's picture."""
    image = widget.grab().toImage()
    found: dict[str, int] = {}
    for y in range(image.height()):
        for x in range(image.width()):
            name = image.pixelColor(x, y).name()
            found[name] = found.get(name, 0) + 1
    return found


def test_stable_and_held_text_are_painted_differently(window: SubtitleWindow, subtitles: Subtitles) -> None:
    look = Look()
    subtitles.apply(caption(0, "Guten"))
    stable = colours(window.view)
    assert stable.get(look.stable.name(), 0) > 50
    assert look.held.name() not in stable
    subtitles.apply(caption(0, "Guten", " Morgen"))
    both = colours(window.view)
    assert both[look.held.name()] > 50
    assert window.view.text() == ["Guten Morgen"]


def test_held_text_differs_by_more_than_colour(window: SubtitleWindow, subtitles: Subtitles) -> None:
    """Dots under held text add ink that the same text, stable, does not have."""

    def inked_rows() -> int:
        image = window.view.grab().toImage()
        empty = image.pixelColor(image.width() - 1, 0)
        return sum(any(image.pixelColor(x, y) != empty for x in range(image.width())) for y in range(image.height()))

    subtitles.apply(caption(0, "", "sum"))
    held = inked_rows()
    subtitles.apply(caption(0, "sum"))
    assert held > inked_rows()


def test_every_text_can_be_read_on_any_desktop() -> None:
    look = Look()
    worst = blend(look.background, QColor("white"))
    for colour in (look.stable, look.held, look.quiet, look.warning):
        assert contrast(colour, worst) >= CONTRAST
    assert contrast(look.stable, look.held) > 1.5, "held is clearly lighter or darker than stable"


def test_contrast_follows_the_formula() -> None:
    assert contrast(QColor("white"), QColor("black")) == pytest.approx(21.0)
    assert contrast(QColor("#777777"), QColor("white")) == pytest.approx(4.48, abs=0.01)
    assert blend(QColor(0, 0, 0, 0), QColor("white")).name() == "#ffffff"


def test_markup_in_state_and_subtitles_stays_text(window: SubtitleWindow, subtitles: Subtitles) -> None:
    subtitles.apply(caption(0, "<b>fett</b>"))
    assert window.view.text() == ["<b>fett</b>"]
    window.show_status(Status(Phase.FAILED, "<script>no</script>"))
    assert window.bar.state.text() == "<script>no</script>"
    assert window.bar.state.textFormat() is Qt.TextFormat.PlainText


def test_long_words_do_not_widen_the_window(window: SubtitleWindow, subtitles: Subtitles, qtbot: QtBot) -> None:
    width = window.width()
    subtitles.apply(caption(0, "x" * 300))
    window.show_status(Status(Phase.FAILED, "y" * 300, notices=("z" * 300,)))
    qtbot.wait(1)
    assert window.width() == width
    assert "".join(window.view.text()) in "x" * 300


def test_every_state_is_shown(window: SubtitleWindow) -> None:
    bar = window.bar
    window.show_status(Status(Phase.LOADING, "part 2 of 3", 0.45, quality="demo quality", wanted=True))
    assert bar.state.text() == "Loading 45%: part 2 of 3"
    assert bar.progress.isVisible()
    assert bar.progress.value() == 45
    assert bar.quality.text() == "demo quality"
    assert bar.button.text() == "Stop"
    window.show_status(Status(Phase.READY))
    assert (bar.state.text(), bar.button.text(), bar.progress.isVisible()) == ("Ready", "Start", False)
    window.show_status(Status(Phase.LISTENING, speech=True, wanted=True, notices=("Rows are missing.",)))
    assert (bar.state.text(), bar.button.text(), bar.meter.isVisible()) == ("Speech", "Stop", True)
    assert bar.notice.isVisible()
    window.show_status(Status(Phase.LISTENING, speech=True, lag_s=4.2, wanted=True))
    assert bar.state.text() == "4.2 s behind"
    window.show_status(Status(Phase.STOPPING, wanted=True))
    assert not bar.button.isEnabled()
    window.show_status(Status(Phase.SOURCE_LOST, "The microphone 'X' was disconnected."))
    assert bar.state.text() == "The microphone 'X' was disconnected."
    window.show_status(Status(Phase.ENGINE_STOPPED, REASON))
    assert bar.state.text() == REASON
    assert bar.again.isVisible()
    assert not bar.button.isVisible()


def test_the_keyboard_reaches_everything(window: SubtitleWindow, qtbot: QtBot) -> None:
    window.show_status(Status(Phase.READY))
    with qtbot.waitSignal(window.toggle):
        qtbot.keyClick(window, Qt.Key.Key_Space)
    with qtbot.waitSignal(window.leave):
        qtbot.keyClick(window, Qt.Key.Key_Q, Qt.KeyboardModifier.ControlModifier)
    window.show_status(Status(Phase.ENGINE_STOPPED, REASON))
    with qtbot.waitSignal(window.restart):
        qtbot.keyClick(window, Qt.Key.Key_R, Qt.KeyboardModifier.ControlModifier)
    with qtbot.waitSignal(window.restart), qtbot.assertNotEmitted(window.toggle):
        qtbot.keyClick(window.bar.again, Qt.Key.Key_Space)


def test_the_mouse_reaches_everything(window: SubtitleWindow, qtbot: QtBot) -> None:
    window.show_status(Status(Phase.READY))
    with qtbot.waitSignal(window.toggle):
        qtbot.mouseClick(window.bar.button, Qt.MouseButton.LeftButton)
    window.show_status(Status(Phase.ENGINE_STOPPED, REASON))
    with qtbot.waitSignal(window.restart):
        qtbot.mouseClick(window.bar.again, Qt.MouseButton.LeftButton)
    offered = [action.text() for action in window._menu.actions() if not action.isSeparator()]
    assert (offered[0], offered[1], offered[-1]) == ("Start", "Restart the engine", "Quit")


def test_closing_asks_and_does_not_close(window: SubtitleWindow, qtbot: QtBot) -> None:
    with qtbot.waitSignal(window.leave):
        window.close()
    assert window.isVisible()


def test_dragging_moves_the_window_where_nobody_else_does_it(
    window: SubtitleWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(type(window.windowHandle()), "startSystemMove", lambda _: False)
    before = window.pos()
    qtbot.mousePress(window.view, Qt.MouseButton.LeftButton, pos=QPoint(20, 10))
    qtbot.mouseMove(window.view, QPoint(60, 40))
    qtbot.mouseRelease(window.view, Qt.MouseButton.LeftButton, pos=QPoint(60, 40))
    assert window.pos() - before == QPoint(40, 30)


def test_everything_has_a_name_for_screen_readers(window: SubtitleWindow, subtitles: Subtitles) -> None:
    for kind in (QPushButton, QLabel, QProgressBar):
        for widget in window.findChildren(kind):
            assert widget.accessibleName(), widget
    assert window.view.accessibleName() == "Subtitles"
    subtitles.apply(caption(0, "Guten Morgen.", final=True))
    assert window.view.accessibleDescription() == "Guten Morgen."


def test_the_level_is_shown_in_decibels(window: SubtitleWindow) -> None:
    window.show_status(Status(Phase.LISTENING))
    for peak, share in ((0.0, 0.0), (0.001, 0.0), (0.0316, 0.5), (1.0, 1.0)):
        window.show_level(peak)
        assert window.bar.meter._share == pytest.approx(share, abs=0.01)


def test_thousands_of_calls_into_qt_do_not_end_the_process() -> None:
    """One release of PySide6 lost a reference of None in each call on CPython 3.11 and aborted after some 5,000."""
    code = (
        "from PySide6.QtWidgets import QApplication, QLabel\n"
        "app, label = QApplication([]), None\n"
        "label = QLabel()\n"
        "for n in range(20_000): label.setText(str(n))\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=100, check=False).returncode == 0
