"""The subtitles themselves: as many of the newest rows as fit."""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.subtitles import Line, Subtitles
from app.widgets.look import Look
from app.widgets.text_layout import CaptionLayout


class SubtitleView(QWidget):
    """Paints a `Subtitles` model; it is repainted when the model says that something changed."""

    def __init__(self, subtitles: Subtitles, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._subtitles, self._look = subtitles, look
        self._layout = CaptionLayout(look)
        self._leave = subtitles.changed.subscribe(self._changed)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setAccessibleName("Subtitles")

    def detach(self) -> None:
        """Stop listening to the model."""
        self._leave()

    def text(self) -> list[str]:
        """What is on screen, row by row."""
        self._layout.set_width(float(self.width()))
        return self._layout.text(self._subtitles.lines, float(self.height()))

    def sizeHint(self) -> QSize:
        """Room for the number of lines that the look asks for."""
        return QSize(600, round(self._look.lines * self._layout.row_height) + 2)

    def minimumSizeHint(self) -> QSize:
        return QSize(160, round(self._layout.row_height) + 2)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._layout.set_width(float(self.width()))
        self._layout.paint(painter, self._subtitles.lines, float(self.height()))
        painter.end()

    def _changed(self, line: Line | None) -> None:
        self.update()
        if line is not None and line.final:
            self.setAccessibleDescription(line.stable)
