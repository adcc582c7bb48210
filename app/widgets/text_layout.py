"""Wraps utterances into rows and paints the newest of them. Text is plain: nothing in it is ever markup.

Rows lie in numbered slots, one below the other. A row keeps its slot, and what is on a row stays on it
(`steady_wrap`); the view only scrolls on, when `bottom`, the slot below the last visible one, grows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import regex
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QFont, QFontMetricsF, QPainter, QPen, QTextCharFormat, QTextLayout, QTextOption

from app.subtitles import Line, Run
from app.widgets.look import Look
from app.widgets.steady_wrap import shared, wrap

_BREAKS = str.maketrans(dict.fromkeys("\r\n\t\v\f\x85\u2028\u2029", " "))
_EMOJI = regex.compile(
    r"[\p{Extended_Pictographic}\p{Regional_Indicator}]"
    r"[\p{Extended_Pictographic}\p{Regional_Indicator}\p{Emoji_Modifier}\uFE0F\u200D]*"
)
_CHUNK_ROWS = 3  # rows' worth of narrow letters that are measured at a time


@dataclass(slots=True)
class _Row:
    """One row as it is painted. `outline` is the same text as a thick line, painted under it."""

    piece: str
    stable: int
    layout: QTextLayout
    outline: QTextLayout | None
    height: float


@dataclass(slots=True)
class _Laid:
    """One utterance, wrapped: `starts` are the beginnings of its rows in `text`, of which `stable` letters are."""

    text: str = ""
    stable: int = 0
    starts: list[int] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)
    leftwards: bool = False
    first: int = 0  # slot of its first row

    @property
    def end(self) -> int:
        return self.first + len(self.rows)

    @property
    def stable_slot(self) -> int | None:
        """The slot in which its stable text ends."""
        if not self.stable:
            return None
        return self.first + max(0, sum(start < self.stable for start in self.starts) - 1)


class CaptionLayout:
    """Keeps the wrapped form of each utterance and lays out again only rows that changed, so an event costs one or two
    rows. `pitch`: pixels from row to row; it grows when a script needs more, and stays. `bottom`: see the module.
    """

    def __init__(
        self, look: Look, font: QFont | None = None, runs: Callable[[Line], Sequence[Run]] = lambda line: line.runs
    ) -> None:
        self._look, self._font, self._runs = look, font or look.font, runs
        self._width = self._reserve = 0.0
        self._laid: dict[tuple[int, int], _Laid] = {}
        self._stable, self._held, self._edge = QTextCharFormat(), QTextCharFormat(), QTextCharFormat()
        self._stable.setForeground(look.stable)
        self._held.setForeground(look.held)
        self._held.setUnderlineStyle(look.mark)
        self._held.setUnderlineColor(look.held)
        pen = QPen(look.outline, 2 * look.outline_px)  # half of it lies outside the letter
        pen.setJoinStyle(Qt.PenJoinStyle.RoundJoin)
        self._edge.setTextOutline(pen)
        self._edge.setForeground(look.outline)
        self.pitch = self.row_height = _row_height(self._font)
        self.bottom = 0

    def set_width(self, width: float) -> None:
        """Wrap at this width in pixels from now on."""
        if width != self._width:
            self._width = width
            # punctuation that comes after a word was painted hangs into this, as does one East Asian letter
            self._reserve = min(self.row_height, width / 8)
            self.forget()

    def forget(self) -> None:
        """Begin anew: what comes next is wrapped without regard to what was painted."""
        self._laid.clear()
        self.bottom = 0

    def visible(self, height: float) -> int:
        """Rows that fit into this height; one at least."""
        return max(1, int((height + 0.5) / self.pitch))

    def arrange(self, lines: Sequence[Line], height: float) -> None:
        """Take the newest state of the lines."""
        keep = {line.key for line in lines}
        for key in [key for key in self._laid if key not in keep]:
            del self._laid[key]
        end, anchor, last = 0, None, None
        for line in lines:
            laid = self._wrapped(line)
            if not laid.rows:
                continue
            laid.first = end = max(end, laid.first)
            end = laid.end
            slot = laid.stable_slot
            anchor = slot if slot is not None else anchor
            last = laid
        if last is None:
            self.bottom = 0
            return
        self._scroll(last, anchor, self.visible(height))

    def _scroll(self, last: _Laid, anchor: int | None, rows: int) -> None:
        """Scroll on so far that the newest text shows, but never the newest stable word away."""
        limit = (last.first if anchor is None else anchor) + rows
        if rows == 1 and not last.stable:
            limit = last.first + 1  # a single row shows what is being said rather than what was
        self.bottom = min(limit, max(self.bottom, last.end))
        self.bottom = min(self.bottom, last.end + rows - 1)  # held text that went away leaves rows empty, not all

    def placed(self, height: float, above: int = 0) -> Iterator[tuple[int, _Row]]:
        """Slot and row of what is visible, `above` more rows included, from top to bottom."""
        top = self.bottom - self.visible(height) - above
        for laid in sorted(self._laid.values(), key=lambda laid: laid.first):
            for number in range(max(top, laid.first), min(self.bottom, laid.end)):
                yield number, laid.rows[number - laid.first]

    def paint(self, painter: QPainter, lines: Sequence[Line], height: float, shift: float = 0.0) -> None:
        """Draw the newest rows, the last one at the lower end of `height` pixels; all of it `shift` pixels lower."""
        self.arrange(lines, height)
        above = 0 if shift <= 0 else int(shift / self.pitch) + 1
        placed = list(self.placed(height, above))
        for part in ("outline", "layout"):
            for slot, row in placed:
                layout: QTextLayout | None = getattr(row, part)
                if layout is not None:
                    top = height - (self.bottom - slot) * self.pitch + (self.pitch - row.height) + shift
                    layout.draw(painter, QPointF(0, top))

    def text(self, lines: Sequence[Line], height: float) -> list[str]:
        """The rows that `paint` draws, from top to bottom."""
        self.arrange(lines, height)
        return [row.piece.strip() for _, row in self.placed(height)]

    # ------------------------------------------------------------ wrapping

    def _wrapped(self, line: Line) -> _Laid:
        laid = self._laid.setdefault(line.key, _Laid(first=0))
        runs = [run for run in self._runs(line) if self._look.show_held or not run.held]
        text = "".join(run.text for run in runs).translate(_BREAKS)
        stable = sum(len(run.text) for run in runs if not run.held)
        if (text, stable) == (laid.text, laid.stable):
            return laid
        if _direction(text[: shared(text, laid.text)]) is None:  # nothing painted has a direction yet
            laid.leftwards = right_to_left(text)
        starts = wrap(text, self, laid.text, laid.starts)
        ends = [*starts[1:], len(text)] if starts else []
        kept = {(row.piece, row.stable): row for row in laid.rows}
        rows = []
        for start, end in zip(starts, ends, strict=True):
            piece, firm = text[start:end].rstrip(), max(0, min(stable, end) - start)
            rows.append(kept.get((piece, min(firm, len(piece)))) or self._row(piece, firm, laid.leftwards))
        laid.text, laid.stable, laid.starts, laid.rows = text, stable, starts, rows
        return laid

    def natural(self, text: str, start: int) -> int:
        """See `steady_wrap.Measure`."""
        size = int(_CHUNK_ROWS * self._width / max(1.0, self.row_height / 4)) + 16
        while True:
            piece = text[start : start + size]
            layout = QTextLayout(piece, self._font)
            layout.setTextOption(_wrapping(False))
            layout.beginLayout()
            row = layout.createLine()
            row.setLineWidth(max(1.0, self._width - self._reserve))
            layout.endLayout()
            length = _letters(piece, row.textLength())
            if length < len(piece) or start + size >= len(text):
                return start + max(1, length)
            size *= 2

    def fits(self, piece: str) -> bool:
        """See `steady_wrap.Measure`."""
        layout = self._single(piece, False)  # a line is only good while its layout lives
        return layout.lineAt(0).naturalTextWidth() <= self._width

    def _row(self, piece: str, stable: int, leftwards: bool) -> _Row:
        stable = min(stable, len(piece))
        gap = len(piece[stable:]) - len(piece[stable:].lstrip())  # no mark under the space before a held word
        border = _utf16(piece[: stable + gap])
        formats = [_range(0, border, self._stable), _range(border, _utf16(piece) - border, self._held)]
        layout, outline = self._single(piece, leftwards, formats), None
        if self._look.outline_px:
            edges = [_range(_utf16(piece[:a]), _utf16(piece[a:b]), self._edge) for a, b in _without_emoji(piece)]
            outline = self._single(piece, leftwards, edges)
        height = max(self.row_height, layout.lineAt(0).height())
        self.pitch = max(self.pitch, height)
        return _Row(piece, stable, layout, outline, height)

    def _single(self, piece: str, leftwards: bool, formats: Sequence[QTextLayout.FormatRange] = ()) -> QTextLayout:
        """A piece on one row, however long it is."""
        layout = QTextLayout(piece, self._font)
        option = _wrapping(leftwards)
        option.setWrapMode(QTextOption.WrapMode.NoWrap)
        layout.setTextOption(option)
        layout.setFormats(list(formats))  # before the lines: setting them later undoes the layout
        layout.beginLayout()
        layout.createLine().setLineWidth(self._width)
        layout.endLayout()
        return layout


def _without_emoji(piece: str) -> Iterator[tuple[int, int]]:
    """The stretches of a text that can have an outline. Emoji are pictures: Qt loses them when it draws an edge."""
    at = 0
    for match in _EMOJI.finditer(piece):
        if match.start() > at:
            yield at, match.start()
        at = match.end()
    if at < len(piece):
        yield at, len(piece)


def _range(start: int, length: int, manner: QTextCharFormat) -> QTextLayout.FormatRange:
    made = QTextLayout.FormatRange()
    made.start, made.length, made.format = start, length, manner
    return made


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
    return _direction(text) in ("R", "AL")


def _direction(text: str) -> str | None:
    kinds = (unicodedata.bidirectional(char) for char in text)
    return next((kind for kind in kinds if kind in ("L", "R", "AL")), None)


def _wrapping(leftwards: bool) -> QTextOption:
    """At words, else at graphemes; right-to-left text starts at the right."""
    option = QTextOption()
    option.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
    direction = Qt.LayoutDirection.RightToLeft if leftwards else Qt.LayoutDirection.LeftToRight
    option.setTextDirection(direction)
    option.setAlignment(Qt.AlignmentFlag.AlignRight if leftwards else Qt.AlignmentFlag.AlignLeft)
    return option


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _letters(text: str, units: int) -> int:
    """Code points in the first `units` UTF-16 units of a text; Qt counts in those."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "ignore"))
