"""The recorded sessions, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QPushButton, QVBoxLayout, QWidget

from app.i18n import fill, translate
from app.reading import clock
from app.session_files import SessionSummary

PATH = Qt.ItemDataRole.UserRole


def state_text(state: str) -> str:
    """How a session stands, in a word."""
    match state:
        case "running":
            return translate("Transcript", "running")
        case "cut off":
            return translate("Transcript", "interrupted")
        case "damaged":
            return translate("Transcript", "damaged")
        case "of a newer version":
            return translate("Transcript", "of a newer version")
    return ""


def session_text(summary: SessionSummary) -> str:
    """Two lines: when, and what."""
    when = summary.path.stem
    if summary.started is not None:
        when = f"{summary.started:%Y-%m-%d %H:%M}"
    pair = f"{summary.source_lang}→{summary.target_lang}" if summary.target_lang else ""
    title = " ".join(summary.title.split())
    facts = [clock(summary.audio_s) if summary.audio_s else "", pair, state_text(summary.state)]
    return f"{when}  {title}\n{'  '.join(filter(None, facts))}"


class SessionList(QWidget):
    """`opened` carries the path of a session, `delete` a list of paths."""

    opened = Signal(object)
    delete = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.list = QListWidget()
        self.list.setSelectionMode(QListWidget.SelectionMode.ExtendedSelection)
        self.list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.setAlternatingRowColors(True)
        self.remove = QPushButton()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.list, 1)
        column.addWidget(self.remove)
        self._filling = False
        self._running: Path | None = None
        self.list.currentItemChanged.connect(self._moved)
        self.list.itemSelectionChanged.connect(self._enable)
        self.remove.clicked.connect(self._delete)
        QShortcut(QKeySequence.StandardKey.Delete, self.list, self._delete, context=Qt.ShortcutContext.WidgetShortcut)
        self.retranslate()

    def show_sessions(self, summaries: Sequence[SessionSummary], running: Path | None, current: Path | None) -> None:
        """`running`: the journal of this program's running session; `current`: the one that is shown."""
        self._filling = True
        self.list.clear()
        for summary in summaries:
            item = QListWidgetItem(session_text(summary))
            item.setData(PATH, summary.path)
            item.setSizeHint(QSize(0, self.list.fontMetrics().lineSpacing() * 2 + 10))
            item.setToolTip(session_text(summary))
            self.list.addItem(item)
            if summary.path == current:
                self.list.setCurrentItem(item)
        self._running = running
        self._filling = False
        self._enable()

    @property
    def current(self) -> Path | None:
        """The session that is selected."""
        item = self.list.currentItem()
        return item.data(PATH) if item else None

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.list.setAccessibleName(translate("Transcript", "Sessions"))
        self._enable()

    def _chosen(self) -> list[Path]:
        """What may be deleted of what is selected."""
        paths = [item.data(PATH) for item in self.list.selectedItems()]
        return [path for path in paths if path != self._running]

    def _enable(self) -> None:
        count = len(self._chosen())
        self.remove.setEnabled(count > 0)
        several = fill(translate("Transcript", "&Delete {count} sessions…"), count=count)
        self.remove.setText(several if count > 1 else translate("Transcript", "&Delete the session…"))

    def _moved(self) -> None:
        if not self._filling and (path := self.current) is not None:
            self.opened.emit(path)

    def _delete(self) -> None:
        if paths := self._chosen():
            self.delete.emit(paths)
