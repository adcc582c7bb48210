"""The small bar under the subtitles: what the program is doing, how loud it hears, and the buttons."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.status import Phase, Status
from app.widgets.look import Look

FLOOR_DB = -60.0
TROUBLE = (Phase.SOURCE_LOST, Phase.ENGINE_STOPPED, Phase.FAILED)


class LevelMeter(QWidget):
    """Peak of the sound on a scale of decibels."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look, self._share = look, 0.0
        self.setFixedSize(QSize(64, 8))
        self.setAccessibleName("Microphone level")

    def show_level(self, peak: float) -> None:
        """`peak` in [0, 1]."""
        level_db = 20 * math.log10(peak) if peak > 0 else FLOOR_DB
        share = round(min(1.0, max(0.0, 1 - level_db / FLOOR_DB)), 2)
        if share != self._share:
            self._share = share
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(self.rect())
        for share, colour, opacity in ((1.0, self._look.quiet, 0.3), (self._share, self._look.accent, 1.0)):
            painter.setOpacity(opacity)
            painter.setBrush(colour)
            bar = QRectF(track.left(), track.top(), track.width() * share, track.height())
            painter.drawRoundedRect(bar, 4, 4)
        painter.end()


class StateBar(QWidget):
    """Shows a `Status`. `toggle` and `restart` are what the person asks for."""

    toggle = Signal()
    restart = Signal()

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look = look
        self.state = _label("State")
        self.notice = _label("Notice")
        self.quality = _label("Quality of the translation")
        self.quality.setWordWrap(False)
        self.quality.setSizePolicy(QSizePolicy.Policy.Minimum, QSizePolicy.Policy.Preferred)
        self.meter = LevelMeter(look)
        self.button = _button("Start", "Space")
        self.again = _button("Restart", "Ctrl+R")
        self.progress = QProgressBar()
        self.progress.setRange(0, 100)
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(3)
        self.progress.setAccessibleName("Loading")
        self.button.clicked.connect(self.toggle)
        self.again.clicked.connect(self.restart)
        self._arrange()
        self._colour()
        self.show_status(Status())

    def show_status(self, status: Status) -> None:
        """Show what the program is doing."""
        trouble = status.phase in TROUBLE
        _say(self.state, status.line, self._look.warning if trouble else self._look.quiet)
        _say(self.notice, status.notice, self._look.warning)
        _say(self.quality, status.quality, self._look.quiet)
        self.notice.setVisible(bool(status.notice) and not trouble)
        self.quality.setVisible(bool(status.quality))
        self.meter.setVisible(status.phase is Phase.LISTENING)
        self.again.setVisible(status.can_restart)
        self.button.setVisible(not status.can_restart)
        self.button.setEnabled(status.phase is not Phase.STOPPING)
        self.button.setText("Stop" if status.wanted or status.phase.running else "Start")
        self.button.setAccessibleName(self.button.text())
        self.progress.setVisible(status.phase is Phase.LOADING)
        self.progress.setValue(round(100 * (status.progress or 0.0)))

    def _arrange(self) -> None:
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self.state, 3)
        row.addWidget(self.notice, 4)
        for widget in (self.quality, self.meter, self.again, self.button):
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.progress)
        column.addLayout(row)

    def _colour(self) -> None:
        text, accent = self._look.stable.name(), self._look.accent.name()
        self.setStyleSheet(
            f"QPushButton {{ color: {text}; background: rgba(255, 255, 255, 28); padding: 3px 12px;"
            f" border: 1px solid rgba(255, 255, 255, 70); border-radius: 6px; }}"
            f"QPushButton:hover {{ background: rgba(255, 255, 255, 52); }}"
            f"QPushButton:focus {{ border-color: {accent}; }}"
            f"QPushButton:disabled {{ color: {self._look.quiet.name()}; }}"
            f"QProgressBar {{ background: rgba(255, 255, 255, 30); border: none; }}"
            f"QProgressBar::chunk {{ background: {accent}; }}"
        )


def _label(name: str) -> QLabel:
    """A label of plain text that never makes the window wider."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    label.setAccessibleName(name)
    return label


def _say(label: QLabel, text: str, colour: object) -> None:
    if label.text() != text:
        label.setText(text)
    palette = label.palette()
    palette.setColor(QPalette.ColorRole.WindowText, colour)
    label.setPalette(palette)


def _button(text: str, keys: str) -> QPushButton:
    button = QPushButton(text)
    button.setToolTip(keys)
    button.setAccessibleName(text)
    button.setAccessibleDescription(f"Shortcut {keys}")
    return button
