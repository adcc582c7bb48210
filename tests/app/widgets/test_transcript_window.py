"""The transcript window, also at 10,000 lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QListWidget, QMessageBox
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.reading import Reading
from app.session_files import SessionSummary
from app.widgets.transcript_table import TARGET, TIME, TextDelegate
from app.widgets.transcript_window import TranscriptWindow
from tests.app.captions import record

ROWS = [(f"Sentence {n} on weather", f"Satz {n} über das <b>Wetter</b>", 3.0 * n, 3.0 * n + 2) for n in range(40)]
SCRIPTS = ["שלום עולם", "مرحبا", "汉字" * 50, "\U0001f469\u200d\U0001f467" * 20, "x" * 80, "a\u0300" * 50, "İİ"]
SUMMARIES = [
    SessionSummary(Path("/s/b.jsonl"), "Mic\nwith a break", "en", "de", None, 65.0, True, "running"),
    SessionSummary(Path("/s/a.jsonl"), "Talk", "en", "de", None, 5.0, True, "cut off"),
    SessionSummary(Path("/s/0.jsonl"), "0", state="damaged"),
]


@pytest.fixture
def window(qtbot: QtBot) -> Iterator[TranscriptWindow]:
    made = TranscriptWindow(Reading(record(*ROWS)))
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.detach()
    made.hide()
    made.deleteLater()


def cell(window: TranscriptWindow, row: int, column: int) -> str:
    return str(window.table.data(window.table.index(row, column)))


def test_source_and_target_stand_side_by_side(window: TranscriptWindow) -> None:
    assert [cell(window, 2, column) for column in range(3)] == ["0:00:06", ROWS[2][0], ROWS[2][1]]
    assert window.table.rowCount() == 40


def test_the_model_keeps_qts_rules(window: TranscriptWindow, qtmodeltester: ModelTester) -> None:
    qtmodeltester.check(window.table)


def test_new_lines_arrive_and_are_followed_only_at_the_end(window: TranscriptWindow, qtbot: QtBot) -> None:
    def say(number: int) -> None:
        window.reading.apply(
            {
                "type": "stable",
                "utterance_id": number,
                "source": "new",
                "target": "neu",
                "start_s": 3.0 * number,
                "end_s": 3.0 * number + 1,
            }
        )

    bar = window.view.verticalScrollBar()
    window.view.scrollToBottom()
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    say(40)
    qtbot.waitUntil(lambda: bar.value() == bar.maximum())
    bar.setValue(0)
    say(41)
    assert window.table.rowCount() == 42
    assert bar.value() == 0, "who reads further up is left alone"


def test_rows_on_screen_are_as_high_as_their_text(qtbot: QtBot) -> None:
    made = TranscriptWindow(Reading(record(("short", "kurz", 0, 1), ("long " * 80, "lang " * 80, 1, 2))))
    made.show()
    qtbot.waitExposed(made)
    qtbot.waitUntil(lambda: made.view.rowHeight(1) > 3 * made.view.rowHeight(0))
    made.detach()
    made.deleteLater()


def test_search_goes_from_place_to_place(window: TranscriptWindow, qtbot: QtBot) -> None:
    qtbot.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    qtbot.waitUntil(window.search.hasFocus)
    qtbot.keyClicks(window.search, "SATZ 1")
    qtbot.waitUntil(lambda: window.count.text() == "1 of 11")
    assert window.view.selected_rows() == [1]
    qtbot.keyClick(window.search, Qt.Key.Key_Return)
    assert window.view.selected_rows() == [10]
    qtbot.keyClick(window, Qt.Key.Key_F3)
    assert window.view.selected_rows() == [11]
    qtbot.keyClick(window, Qt.Key.Key_F3, Qt.KeyboardModifier.ShiftModifier)
    assert window.view.selected_rows() == [10]
    assert window.count.text() == "2 of 11"
    window.find_next(-1)
    window.find_next(-1)
    assert window.view.selected_rows() == [19], "around the end"


def test_what_is_not_there_is_said(window: TranscriptWindow, qtbot: QtBot) -> None:
    window.search.setText("nothing like it")
    qtbot.waitUntil(lambda: window.count.text() == "not found")
    window.search.clear()
    qtbot.waitUntil(lambda: window.count.text() == "")


@pytest.mark.parametrize(("typed", "row"), [("0:10", 3), ("1:00", 20), ("99:00:00", 39), ("0", 0)])
def test_a_time_is_jumped_to(typed: str, row: int, window: TranscriptWindow, qtbot: QtBot) -> None:
    window.time.setText(typed)
    qtbot.keyClick(window.time, Qt.Key.Key_Return)
    assert window.view.selected_rows() == [row]


def test_what_is_no_time_changes_nothing(window: TranscriptWindow) -> None:
    window.view.go_to(5)
    window.time.setText("soon")
    window.go_to_time()
    assert window.view.selected_rows() == [5]
    assert "1:23" in window.time.toolTip()


def test_bookmarks_are_asked_for_and_shown(window: TranscriptWindow, qtbot: QtBot) -> None:
    window.view.go_to(3)
    with qtbot.waitSignal(window.bookmark) as heard:
        qtbot.keyClick(window, Qt.Key.Key_B, Qt.KeyboardModifier.ControlModifier)
    assert heard.args == [3, True]
    window.reading.mark(3, True)
    assert cell(window, 3, TIME) == "0:00:09 ★"
    with qtbot.waitSignal(window.bookmark) as heard:
        window.toggle_mark()
    assert heard.args == [3, False]
    window.view.go_to(0)
    qtbot.keyClick(window, Qt.Key.Key_F2)
    assert window.view.selected_rows() == [3]


def test_lines_are_copied(window: TranscriptWindow) -> None:
    window.view.go_to(1)
    window.copies["target"].trigger()
    assert QGuiApplication.clipboard().text() == ROWS[1][1]
    window.view.clearSelection()
    window.copies["source"].trigger()
    assert QGuiApplication.clipboard().text().count("\n") == 39


def test_sessions_are_listed_opened_and_deleted_after_a_question(window: TranscriptWindow, qtbot: QtBot) -> None:
    window.show_sessions(SUMMARIES, SUMMARIES[0].path, SUMMARIES[1].path)
    listing = window.sessions.list

    def click(listing: QListWidget, row: int) -> None:
        at = listing.visualItemRect(listing.item(row)).center()
        qtbot.mouseClick(listing.viewport(), Qt.MouseButton.LeftButton, pos=at)

    texts = [listing.item(row).text() for row in range(3)]
    assert "Mic with a break" in texts[0]
    assert "running" in texts[0]
    assert "interrupted" in texts[1]
    with qtbot.waitSignal(window.opened) as heard:
        click(listing, 0)
    assert heard.args == [SUMMARIES[0].path]
    assert not window.sessions.remove.isEnabled(), "the running session cannot be deleted"
    click(listing, 2)
    with qtbot.assertNotEmitted(window.delete):
        window.sessions.remove.click()
    box = window.findChild(QMessageBox)
    assert box is not None
    sure = next(button for button in box.buttons() if button.text() == "&Delete")
    with qtbot.waitSignal(window.delete) as heard:
        sure.click()
    assert heard.args == [[SUMMARIES[2].path]]


def test_an_empty_session_offers_nothing(window: TranscriptWindow) -> None:
    window.reading.open(None)
    assert window.table.rowCount() == 0
    assert not window.export_button.isEnabled()
    window.find_next()
    window.toggle_mark()
    window.next_mark()
    window.go_to_time()


def test_titles_and_problems_are_one_line_of_text(window: TranscriptWindow) -> None:
    window.show_state("Mic\nwith a break", "The session <i>x</i> cannot be read.")
    assert window.windowTitle() == "Transcript: Mic with a break"
    assert "<i>x</i>" in window.state.text()
    assert window.state.textFormat() is Qt.TextFormat.PlainText


def test_ten_thousand_lines_lay_out_only_what_is_on_screen(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a screen costs does not depend on the length of the session: counted in layouts, not in time."""
    laid_out = []
    layout = TextDelegate._layout
    monkeypatch.setattr(TextDelegate, "_layout", lambda *words: laid_out.append(1) or layout(*words))
    many = record(*((f"source {n}", f"target {n} " * 9, float(n), n + 1.0) for n in range(10_000)))
    made = TranscriptWindow(Reading(many))
    made.show()
    qtbot.waitExposed(made)
    made.view.scrollToBottom()
    qtbot.wait(50)
    made.search.setText("target 9999")
    qtbot.waitUntil(lambda: made.count.text() != "")
    made.find_next()
    qtbot.wait(50)
    assert made.view.selected_rows() == [9999]
    assert len(laid_out) < 2000
    made.detach()
    made.deleteLater()


@pytest.mark.parametrize(
    "text", ["שלום עולם", "مرحبا", "汉字" * 50, "👩‍👩‍👧" * 20, "x" * 80, "a\u0300" * 50, "İstanbul İ"]
)
def test_every_script_is_painted(text: str, qtbot: QtBot) -> None:
    made = TranscriptWindow(Reading(record((text, text, 0, 1))))
    made.show()
    qtbot.waitExposed(made)
    made.search.setText(text[:2])
    qtbot.waitUntil(lambda: made.count.text() != "")
    assert not made.grab().isNull()
    assert made.view.columnWidth(TARGET) < made.width()
    made.detach()
    made.deleteLater()
