"""Downloads with their progress, and buttons to pause, resume and cancel them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.downloads import Download
from app.i18n import translate
from app.widgets.preset_card import plain_label
from app.widgets.preset_texts import download_text


class DownloadRows(QWidget):
    """One line for each download; the engine takes one action for all. `asked` carries "pause", "resume", "cancel"."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._paused = False
        self._bars: dict[str, tuple[QLabel, QProgressBar]] = {}
        self.pause, self.cancel = QPushButton(), QPushButton()
        for button in (self.pause, self.cancel):
            button.setAutoDefault(False)
        self.pause.clicked.connect(lambda: self.asked.emit("resume" if self._paused else "pause"))
        self.cancel.clicked.connect(lambda: self.asked.emit("cancel"))
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.pause)
        buttons.addWidget(self.cancel)
        self._column.addLayout(buttons)
        self.show_rows(())

    def show_rows(self, rows: Sequence[Download]) -> None:
        """What there is; nothing at all is hidden."""
        for row in rows:
            label, bar = self._row(row.name)
            label.setText(download_text(row))
            if row.fraction is None and row.state == "running":
                bar.setRange(0, 0)
            else:
                bar.setRange(0, 1000)
                bar.setValue(round(1000 * (row.fraction or 0.0)))
        active = [row for row in rows if row.state in ("running", "paused")]
        self._paused = bool(active) and all(row.state == "paused" for row in active)
        self.pause.setText(translate("Presets", "&Resume") if self._paused else translate("Presets", "&Pause"))
        self.cancel.setText(translate("Presets", "&Cancel the download"))
        for button in (self.pause, self.cancel):
            button.setVisible(bool(active))
        self.setVisible(bool(rows))

    def _row(self, name: str) -> tuple[QLabel, QProgressBar]:
        if name not in self._bars:
            row, label, bar = QWidget(), plain_label(), QProgressBar()
            bar.setTextVisible(False)
            bar.setFixedHeight(8)
            bar.setAccessibleName(name)
            column = QVBoxLayout(row)
            column.setContentsMargins(0, 0, 0, 0)
            column.addWidget(label)
            column.addWidget(bar)
            self._column.insertWidget(self._column.count() - 1, row)
            self._bars[name] = (label, bar)
        return self._bars[name]
