"""Wraps utterances into lines and paints the newest of them. Text is plain: nothing in it is ever markup."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QTextCharFormat, QTextLayout, QTextLine, QTextOption

from app.subtitles import Line
from app.widgets.look import Look


@dataclass(slots=True)
class _Laid:
    """One utterance, wrapped. The layout owns its lines."""

    line: Line
    layout: QTextLayout
    rows: list[QTextLine]


class CaptionLayout:
    """Keeps the wrapped form of each utterance and wraps again only what changed, so an event costs one utterance.

    `row_height`: pixels from row to row.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._width = 0.0
        self._laid: dict[tuple[int, int], _Laid] = {}
        self._stable, self._held = QTextCharFormat(), QTextCharFormat()
        self._stable.setForeground(look.stable)
        self._held.setForeground(look.held)
        self._held.setUnderlineStyle(QTextCharFormat.UnderlineStyle.DotLine)
        self._held.setUnderlineColor(look.held)
        self.row_height = _row_height(look.font)

    def set_width(self, width: float) -> None:
        """Wrap at this width in pixels from now on."""
        if width != self._width:
            self._width = width
            self._laid.clear()

    def paint(self, painter: QPainter, lines: Sequence[Line], height: float) -> None:
        """Draw the newest rows that fit into `height` pixels, the last one at its lower end."""
        top = height
        for laid, row in self._newest(lines, height):
            top -= self._height(row)
            row.draw(painter, QPointF(0, top - row.y()))
            del laid  # held until here: a row is only good while its layout lives

    def text(self, lines: Sequence[Line], height: float) -> list[str]:
        """The rows that `paint` draws, from top to bottom."""
        found = []
        for laid, row in self._newest(lines, height):
            text = laid.layout.text().encode("utf-16-le", "surrogatepass")  # Qt counts in UTF-16 units
            start = 2 * row.textStart()
            piece = text[start : start + 2 * row.textLength()]
            found.append(piece.decode("utf-16-le", "surrogatepass").strip())
        return found[::-1]

    def _height(self, row: QTextLine) -> float:
        """Scripts that come from another font may need more than the usual height."""
        return max(self.row_height, row.height())

    def _newest(self, lines: Sequence[Line], height: float) -> Iterator[tuple[_Laid, QTextLine]]:
        """Rows from the bottom upwards; the last one always, the others while there is room."""
        keep = {line.key for line in lines}
        for key in [key for key in self._laid if key not in keep]:
            del self._laid[key]
        left = height
        for line in reversed(lines):
            laid = self._wrap(line)
            for row in reversed(laid.rows):
                left -= self._height(row)
                if left < 0 and left + self._height(row) < height:
                    return
                yield laid, row

    def _wrap(self, line: Line) -> _Laid:
        laid = self._laid.get(line.key)
        if laid is not None and laid.line == line:
            return laid
        text = _one_line(line.stable + line.held)
        layout = QTextLayout(text, self._look.font)
        layout.setTextOption(_wrapping(right_to_left(text)))
        layout.setFormats(self._formats(line))
        rows: list[QTextLine] = []
        layout.beginLayout()
        while (row := layout.createLine()).isValid():
            row.setLineWidth(self._width)
            rows.append(row)
        layout.endLayout()
        laid = self._laid[line.key] = _Laid(line, layout, rows if line.stable or line.held else [])
        return laid

    def _formats(self, line: Line) -> list[QTextLayout.FormatRange]:
        gap = line.held[: len(line.held) - len(line.held.lstrip())]  # no dots under the space before a held word
        ranges, start = [], 0
        for text, manner in ((line.stable + gap, self._stable), (line.held[len(gap) :], self._held)):
            piece = QTextLayout.FormatRange()
            piece.start, piece.length, piece.format = start, _utf16(text), manner
            ranges.append(piece)
            start += piece.length
        return ranges


def _row_height(font: QFont) -> float:
    """Pixels from row to row; a laid row may be higher than the font's own line spacing, by rounding."""
    layout = QTextLayout("Ägj", font)
    layout.beginLayout()
    row = layout.createLine()
    row.setLineWidth(1000)
    layout.endLayout()
    return max(row.height(), QFontMetricsF(font).lineSpacing())


def right_to_left(text: str) -> bool:
    """Direction of a text by its first letter that has one."""
    kinds = (unicodedata.bidirectional(char) for char in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L"


def _wrapping(leftwards: bool) -> QTextOption:
    """At words, else at graphemes; right-to-left text starts at the right."""
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    direction = Qt.LayoutDirection.RightToLeft if leftwards else Qt.LayoutDirection.LeftToRight
    option.setTextDirection(direction)
    option.setAlignment(Qt.AlignmentFlag.AlignRight if leftwards else Qt.AlignmentFlag.AlignLeft)
    return option


def _one_line(text: str) -> str:
    """Breaks inside a text are spaces here, one for one, so that positions stay."""
    return "".join(" " if char in "\r\n\t\v\f\x85\u2028\u2029" else char for char in text)


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
