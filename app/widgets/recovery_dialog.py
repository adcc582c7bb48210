"""Offered at the start: sessions that a crash, a kill or a power cut has interrupted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n import translate
from app.session_files import SessionSummary
from app.widgets.preset_card import plain_label
from app.widgets.session_list import PATH, session_text


class RecoveryDialog(QDialog):
    """`recover` carries the paths that are to count as whole from now on.

    What is closed without an answer is offered again at the next start.
    """

    recover = Signal(object)

    def __init__(self, sessions: Sequence[SessionSummary], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(translate("Recovery", "Interrupted sessions"))
        self.list = QListWidget()
        self.list.setAccessibleName(translate("Recovery", "Interrupted sessions"))
        for summary in sessions:
            item = QListWidgetItem(session_text(summary))
            item.setData(PATH, summary.path)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked)
            item.setSizeHint(QSize(0, self.list.fontMetrics().lineSpacing() * 2 + 10))
            self.list.addItem(item)
        self.take = QPushButton(translate("Recovery", "&Recover and show"))
        buttons = QDialogButtonBox()
        buttons.addButton(self.take, QDialogButtonBox.ButtonRole.AcceptRole)
        later = buttons.addButton(translate("Recovery", "&Later"), QDialogButtonBox.ButtonRole.RejectRole)
        later.clicked.connect(self.reject)
        self.take.setDefault(True)
        self.take.clicked.connect(self._recover)
        self.list.itemChanged.connect(lambda _: self.take.setEnabled(bool(self.paths)))
        column = QVBoxLayout(self)
        column.addWidget(
            plain_label(
                translate(
                    "Recovery",
                    "The program ended in the middle of these sessions. Everything that was stable is kept.",
                )
            )
        )
        column.addWidget(self.list, 1)
        column.addWidget(buttons)
        self.resize(480, 280)

    @property
    def paths(self) -> list[Path]:
        """The sessions that are ticked."""
        items = [self.list.item(row) for row in range(self.list.count())]
        return [item.data(PATH) for item in items if item.checkState() is Qt.CheckState.Checked]

    def _recover(self) -> None:
        self.recover.emit(self.paths)
        self.accept()
