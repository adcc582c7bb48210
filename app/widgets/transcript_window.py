"""The transcript: sessions at the left, the lines of one at the right, with search, times and bookmarks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QCloseEvent, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QMessageBox,
    QPushButton,
    QSplitter,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n import fill, translate
from app.reading import RESET, Change, Reading, parse_clock
from app.session_files import SessionSummary
from app.widgets.preset_card import plain_label
from app.widgets.sentences import say
from app.widgets.session_list import SessionList
from app.widgets.transcript_table import TranscriptTable, TranscriptView

SEARCH_MS = 120  # after the last key


class TranscriptWindow(QWidget):
    """Shows one `Reading` and the list of sessions.

    `opened` (path), `delete` (paths, already confirmed), `bookmark` (utterance id, on) and `export` are what the person
    asks for; `left`: the window was closed.
    """

    opened = Signal(object)
    delete = Signal(object)
    bookmark = Signal(int, bool)
    export = Signal()
    left = Signal()

    def __init__(self, reading: Reading, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.reading = reading
        self.table, self.view = TranscriptTable(reading, self), TranscriptView()
        self.view.show_table(self.table)
        self.sessions = SessionList()
        self.search, self.time = QLineEdit(), QLineEdit()
        self.search.setClearButtonEnabled(True)
        self.before, self.after, self.copy, self.export_button = (
            QToolButton(),
            QToolButton(),
            QToolButton(),
            QPushButton(),
        )
        self.before.setArrowType(Qt.ArrowType.UpArrow)
        self.after.setArrowType(Qt.ArrowType.DownArrow)
        self.marks = QToolButton()
        self.count, self.state = plain_label(quiet=True), plain_label(quiet=True)
        self._found: list[int] = []
        self._waiting = QTimer(self)
        self._waiting.setSingleShot(True)
        self._waiting.setInterval(SEARCH_MS)
        self._make_actions()
        self._arrange()
        self._connect()
        self.retranslate()
        self.show_state("", "")

    def detach(self) -> None:
        """Stop listening to the models."""
        self._waiting.stop()
        self._leave()
        self.table.detach()

    # ------------------------------------------------------------ what it is told

    def show_sessions(self, summaries: Sequence[SessionSummary], running: Path | None, current: Path | None) -> None:
        """Every session, and which of them is shown."""
        self.sessions.show_sessions(summaries, running, current)
        self.sessions.setVisible(bool(summaries))

    def show_state(self, title: str, problem: str) -> None:
        """Name of the session that is shown, and one sentence on what is wrong with it, or ""."""
        name = translate("Transcript", "Transcript")
        title = " ".join(title.split())
        self.setWindowTitle(f"{name}: {title}" if title else name)
        self.state.setText(f"⚠ {say(problem)}" if problem else "")
        self.state.setVisible(bool(problem))
        self._refresh()

    # ------------------------------------------------------------ what a person does

    def find_next(self, step: int = 1) -> None:
        """Go to the next place that was found, or with -1 to the one before; around the end."""
        if not self._found:
            return
        rows = self.view.selected_rows()
        here = rows[0] if rows else -1
        if step > 0:
            row = next((found for found in self._found if found > here), self._found[0])
        else:
            row = next((found for found in reversed(self._found) if found < here), self._found[-1])
        self.view.go_to(row)
        self._say_count()

    def copy_lines(self, what: str) -> None:
        """The selected lines, or all without a selection, to the clipboard."""
        rows = self.view.selected_rows() or range(len(self.reading.rows))
        QGuiApplication.clipboard().setText(self.reading.text(rows, what))

    def toggle_mark(self) -> None:
        """Set a bookmark on the selected line, or take it away."""
        for row in self.view.selected_rows()[:1]:
            self.bookmark.emit(self.reading.rows[row].utterance_id, not self.reading.marked(row))

    def next_mark(self) -> None:
        """Go to the next bookmark."""
        rows = self.view.selected_rows()
        if (row := self.reading.next_mark(rows[0] if rows else -1)) >= 0:
            self.view.go_to(row)

    def go_to_time(self) -> None:
        """Go to the line that is spoken at the time that was typed."""
        seconds = parse_clock(self.time.text())
        if seconds is not None and (row := self.reading.at_time(seconds)) >= 0:
            self.view.go_to(row)
            self.view.setFocus()
        self._warn_time(seconds is None and bool(self.time.text().strip()))

    # ------------------------------------------------------------ parts

    def _make_actions(self) -> None:
        self.actions_ = {name: QAction(self) for name in ("find", "next", "previous", "mark", "next_mark", "copy")}
        keys = {
            "find": QKeySequence(QKeySequence.StandardKey.Find),
            "next": QKeySequence("F3"),
            "previous": QKeySequence("Shift+F3"),
            "mark": QKeySequence("Ctrl+B"),
            "next_mark": QKeySequence("F2"),
            "copy": QKeySequence(QKeySequence.StandardKey.Copy),
        }
        for name, sequence in keys.items():
            self.actions_[name].setShortcut(sequence)
            self.actions_[name].setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            (self.view if name == "copy" else self).addAction(self.actions_[name])
        self.copies = {what: QAction(self) for what in ("both", "source", "target")}

    def _arrange(self) -> None:
        bar = QHBoxLayout()
        for widget, stretch in ((self.search, 3), (self.before, 0), (self.after, 0), (self.count, 1), (self.time, 0)):
            bar.addWidget(widget, stretch)
        self.time.setFixedWidth(self.fontMetrics().horizontalAdvance("000:00:000") + 24)
        for button in (self.marks, self.copy, self.export_button):
            bar.addWidget(button)
        lines = QWidget()
        column = QVBoxLayout(lines)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(bar)
        column.addWidget(self.state)
        column.addWidget(self.view, 1)
        split = QSplitter()
        split.addWidget(self.sessions)
        split.addWidget(lines)
        split.setStretchFactor(1, 1)
        split.setSizes([230, 700])
        split.setChildrenCollapsible(False)
        outer = QVBoxLayout(self)
        outer.addWidget(split)
        menu = QMenu(self)
        menu.addActions(list(self.copies.values()))
        self.copy.setMenu(menu)
        marks = QMenu(self)
        marks.addActions([self.actions_["mark"], self.actions_["next_mark"]])
        self.marks.setMenu(marks)
        for button in (self.copy, self.marks):
            button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.resize(1000, 620)

    def _connect(self) -> None:
        self._leave = self.reading.changed.subscribe(self._reading_changed)
        self.search.textChanged.connect(lambda _: self._waiting.start())
        self._waiting.timeout.connect(self._search)
        self.search.returnPressed.connect(self._search_now)
        self.time.returnPressed.connect(self.go_to_time)
        self.before.clicked.connect(lambda: self.find_next(-1))
        self.after.clicked.connect(lambda: self.find_next(1))
        self.export_button.clicked.connect(self.export)
        self.sessions.opened.connect(self.opened)
        self.sessions.delete.connect(self._confirm_delete)
        self.view.customContextMenuRequested.connect(self._menu)
        self.view.doubleClicked.connect(lambda _: self.toggle_mark())
        does = {
            "find": self._focus_search,
            "next": lambda: self.find_next(1),
            "previous": lambda: self.find_next(-1),
            "mark": self.toggle_mark,
            "next_mark": self.next_mark,
            "copy": lambda: self.copy_lines("both"),
        }
        for name, do in does.items():
            self.actions_[name].triggered.connect(do)
        for what, action in self.copies.items():
            action.triggered.connect(lambda _=False, what=what: self.copy_lines(what))

    def _reading_changed(self, change: Change) -> None:
        if change.kind == RESET:
            self._search()
        elif self.search.text():
            self._waiting.start()  # new lines are found, too, but the selection stays
        self._refresh()

    def _refresh(self) -> None:
        empty = not self.reading.rows
        self.export_button.setEnabled(not empty)
        self.copy.setEnabled(not empty)
        self.marks.setEnabled(not empty)

    def _search(self) -> None:
        self.view.text.needle = self.search.text().strip()
        self._found = self.reading.search(self.view.text.needle)
        self.view.viewport().update()
        rows = self.view.selected_rows()
        if self._found and not (rows and rows[0] in self._found) and self.search.hasFocus():
            self.find_next(1)
        self._say_count()

    def _search_now(self) -> None:
        if self._waiting.isActive():
            self._waiting.stop()
            self._search()
        else:
            self.find_next(1)

    def _say_count(self) -> None:
        rows = self.view.selected_rows()
        if not self.view.text.needle:
            text = ""
        elif not self._found:
            text = translate("Transcript", "not found")
        elif rows and rows[0] in self._found:
            place = {"number": self._found.index(rows[0]) + 1, "count": len(self._found)}
            text = fill(translate("Transcript", "{number} of {count}"), **place)
        else:
            text = fill(translate("Transcript", "{count} found"), count=len(self._found))
        self.count.setText(text)

    def _focus_search(self) -> None:
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()

    def _warn_time(self, wrong: bool) -> None:
        self.time.setToolTip(translate("Transcript", "A time is 1:23 or 1:02:03") if wrong else self._time_tip)
        if wrong:
            self.time.selectAll()

    def _menu(self, at: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addActions(list(self.copies.values()))
        menu.addSeparator()
        menu.addActions([self.actions_["mark"], self.actions_["next_mark"]])
        menu.popup(self.view.viewport().mapToGlobal(at))

    def _confirm_delete(self, paths: list[Path]) -> None:
        if len(paths) == 1:
            question = translate("Transcript", "Delete this session for good?")
        else:
            question = fill(translate("Transcript", "Delete {count} sessions for good?"), count=len(paths))
        box = QMessageBox(QMessageBox.Icon.Warning, self.windowTitle(), question, parent=self)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setInformativeText(translate("Transcript", "Their text cannot be brought back; exports stay."))
        sure = box.addButton(translate("Transcript", "&Delete"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sure.clicked.connect(lambda: self.delete.emit(paths))
        box.open()

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self._time_tip = translate("Transcript", "Go to a time, for example 1:23")
        self.search.setPlaceholderText(translate("Transcript", "Search in both languages"))
        self.search.setAccessibleName(translate("Transcript", "Search"))
        self.time.setPlaceholderText(translate("Transcript", "Time"))
        self.time.setToolTip(self._time_tip)
        self.view.setAccessibleName(translate("Transcript", "Lines of the session"))
        names = {
            "find": translate("Transcript", "Search"),
            "next": translate("Transcript", "Next place found"),
            "previous": translate("Transcript", "Previous place found"),
            "mark": translate("Transcript", "Set or remove a &bookmark"),
            "next_mark": translate("Transcript", "Go to the &next bookmark"),
            "copy": translate("Transcript", "Copy"),
        }
        for name, text in names.items():
            self.actions_[name].setText(text)
        self.copies["both"].setText(translate("Transcript", "Copy &both languages"))
        self.copies["source"].setText(translate("Transcript", "Copy what was &heard"))
        self.copies["target"].setText(translate("Transcript", "Copy the &translation"))
        for button, name in ((self.before, "previous"), (self.after, "next")):
            keys = self.actions_[name].shortcut().toString(QKeySequence.SequenceFormat.NativeText)
            button.setToolTip(f"{names[name]} ({keys})")
            button.setAccessibleName(names[name])
        self.copy.setText(translate("Transcript", "Copy"))
        self.marks.setText(translate("Transcript", "Bookmarks"))
        self.export_button.setText(translate("Transcript", "&Export…"))
        self.sessions.retranslate()
        self.table.headerDataChanged.emit(Qt.Orientation.Horizontal, 0, 2)

    # ------------------------------------------------------------ Qt's events

    def closeEvent(self, event: QCloseEvent) -> None:
        super().closeEvent(event)
        self.left.emit()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)
