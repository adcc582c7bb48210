"""A label of plain text that takes the room it is given: what does not fit ends in "…" and is shown as a tool tip."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QSize, Qt
from PySide6.QtGui import QHelpEvent, QPainter, QPaintEvent, QPalette, QTextLayout, QTextOption
from PySide6.QtWidgets import QLabel, QSizePolicy, QToolTip

from app.widgets.text_layout import right_to_left


class ElidedLabel(QLabel):
    """As many lines as the height allows. `text()` is always the whole text, also for screen readers."""

    def __init__(self, minimum_width: int = 0) -> None:
        super().__init__()
        self._minimum_width, self.elided = minimum_width, False
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(minimum_width)

    def sizeHint(self) -> QSize:
        return QSize(self._minimum_width, self.fontMetrics().lineSpacing())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(QPalette.ColorRole.WindowText))
        text = " ".join(self.text().split())
        rows = max(1, self.height() // self.fontMetrics().lineSpacing())
        pieces = self._pieces(text, rows)
        height = self.fontMetrics().lineSpacing()
        top = (self.height() - len(pieces) * height) / 2 + self.fontMetrics().ascent()
        for number, piece in enumerate(pieces):
            left = self.width() - self.fontMetrics().horizontalAdvance(piece) if right_to_left(text) else 0
            painter.drawText(QPointF(left, top + number * height), piece)
        painter.end()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.ToolTip and isinstance(event, QHelpEvent) and self.elided:
            QToolTip.showText(event.globalPos(), self.text().replace("<", "‹"), self)
            return True
        return super().event(event)

    def _pieces(self, text: str, rows: int) -> list[str]:
        """The text in at most so many lines; the last one is cut where it must be."""
        pieces: list[str] = []
        while text and len(pieces) < rows - 1:
            layout = QTextLayout(text[:1000], self.font())
            option = QTextOption()
            option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
            layout.setTextOption(option)
            layout.beginLayout()
            line = layout.createLine()
            line.setLineWidth(self.width())
            layout.endLayout()
            length = max(1, line.textLength())
            pieces.append(text[:length].rstrip())
            text = text[length:].lstrip()
        if text:
            pieces.append(self.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, self.width()))
        self.elided = bool(text) and pieces[-1] != text
        return pieces
