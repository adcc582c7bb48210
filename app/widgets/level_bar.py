"""A level meter for dialogs: peak in decibels, the highest of the last second, and words for it."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.i18n import translate

FLOOR_DB = -60.0
QUIET_DB, LOUD_DB = -40.0, -3.0  # speech below the one is hard to recognise, above the other it is cut off
HELD = 20  # blocks that the highest one stays


class LevelBar(QWidget):
    """`show_level` for each block of sound. Grey, the accent colour and the warning colour never stand alone: see
    `words`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._level_db = self._peak_db = FLOOR_DB
        self._age = 0
        self.setMinimumHeight(14)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(translate("Microphones", "Level"))

    def sizeHint(self) -> QSize:
        return QSize(220, 14)

    def show_level(self, peak: float) -> None:
        """`peak` in [0, 1]; 0 also empties the memory of the highest."""
        self._level_db = max(FLOOR_DB, 20 * math.log10(peak)) if peak > 0 else FLOOR_DB
        self._age += 1
        if self._level_db >= self._peak_db or self._age > HELD or peak <= 0:
            self._peak_db, self._age = self._level_db, 0
        self.setAccessibleDescription(self.words)
        self.update()

    @property
    def share(self) -> float:
        """How much of the bar is filled, in [0, 1]."""
        return min(1.0, 1 - self._level_db / FLOOR_DB)

    @property
    def words(self) -> str:
        """What the highest of the last second means."""
        if self._peak_db <= FLOOR_DB:
            return translate("Microphones", "no sound")
        if self._peak_db < QUIET_DB:
            return translate("Microphones", "very quiet")
        if self._peak_db > LOUD_DB:
            return translate("Microphones", "too loud")
        return translate("Microphones", "good")

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(self.rect())
        painter.setBrush(self.palette().color(QPalette.ColorRole.Midlight))
        painter.drawRoundedRect(track, 5, 5)
        colour = QColor("#c8641e") if self._peak_db > LOUD_DB else self.palette().color(QPalette.ColorRole.Highlight)
        painter.setBrush(colour)
        painter.drawRoundedRect(QRectF(track.left(), track.top(), track.width() * self.share, track.height()), 5, 5)
        peak = track.left() + track.width() * (1 - self._peak_db / FLOOR_DB)
        if self._peak_db > FLOOR_DB:
            painter.setBrush(self.palette().color(QPalette.ColorRole.WindowText))
            painter.drawRect(QRectF(min(peak, track.right() - 2), track.top(), 2, track.height()))
        painter.end()
