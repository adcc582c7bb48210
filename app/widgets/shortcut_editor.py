"""The table of shortcuts: each can be changed, none can be given twice."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Signal
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QFormLayout,
    QKeySequenceEdit,
    QLabel,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.i18n import fill, translate
from app.widgets.window_actions import DEFAULT_KEYS, IDS, keys_of, wish_name


class ShortcutEditor(QWidget):
    """`changed` carries the shortcuts that differ from the defaults: action → keys, "" for none."""

    changed = Signal(dict)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keys = dict(DEFAULT_KEYS)
        self.edits: dict[str, QKeySequenceEdit] = {}
        self.names = {wish: QLabel() for wish in IDS}
        self.problem = QLabel()
        self.problem.setWordWrap(True)
        self.reset = QPushButton()
        self.reset.clicked.connect(lambda: self._take({}))
        inside = QWidget()
        form = QFormLayout(inside)
        for wish in IDS:
            edit = self.edits[wish] = QKeySequenceEdit()
            edit.setMaximumSequenceLength(1)
            edit.setClearButtonEnabled(True)
            edit.editingFinished.connect(lambda wish=wish: self._edited(wish))
            self.names[wish].setBuddy(edit)
            form.addRow(self.names[wish], edit)
        area = QScrollArea()
        area.setWidget(inside)
        area.setWidgetResizable(True)
        column = QVBoxLayout(self)
        column.addWidget(area, 1)
        column.addWidget(self.problem)
        column.addWidget(self.reset)
        self.retranslate()
        self.show_shortcuts({})

    def show_shortcuts(self, changed: dict[str, str]) -> None:
        """Show the settings' shortcuts."""
        self._keys = keys_of(changed)
        for wish, edit in self.edits.items():
            edit.setKeySequence(QKeySequence(self._keys[wish]))

    def retranslate(self) -> None:
        """Words in the interface's language."""
        for wish, label in self.names.items():
            name = wish_name(wish).removesuffix("…")
            label.setText(name)
            self.edits[wish].setAccessibleName(fill(translate("Shortcuts", "Shortcut for {action}"), action=name))
        self.reset.setText(translate("Shortcuts", "Back to the &defaults"))

    def _edited(self, wish: str) -> None:
        edit = self.edits[wish]
        keys = edit.keySequence().toString()
        if keys == QKeySequence(self._keys[wish]).toString():
            return
        taken = next((one for one, other in self._keys.items() if one != wish and keys and _same(other, keys)), None)
        if taken is not None:
            text = translate("Shortcuts", "{keys} is taken by “{action}”.")
            self.problem.setText(fill(text, keys=keys, action=wish_name(taken).removesuffix("…")))
            edit.setKeySequence(QKeySequence(self._keys[wish]))
            return
        self.problem.setText("")
        keep = {one: other for one, other in self._keys.items() if not _same(other, DEFAULT_KEYS[one])}
        self._take({**keep, wish: keys})

    def _take(self, changed: dict[str, str]) -> None:
        changed = {wish: keys for wish, keys in changed.items() if not _same(keys, DEFAULT_KEYS[wish])}
        self.show_shortcuts(changed)
        self.changed.emit(changed)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)


def _same(one: str, other: str) -> bool:
    return QKeySequence(one) == QKeySequence(other)
