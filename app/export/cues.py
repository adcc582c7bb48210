"""Subtitle cues of a session: how text is cut into cues of two lines, and when each one is shown. Pure.

Rules (broadcast practice, the values of the large streaming services' style guides): at most 2 lines of at most 42
columns, at least 5/6 s and at most 7 s on screen, 17 characters a second to read. Times are integer milliseconds,
rounded once. Where speech is denser than the rules allow, cues come later, never shorter and never on top of another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from app.export.text import Piece, ends_clause, join, pieces, width_of
from app.session_record import SessionRecord, Utterance

LINE_COLUMNS = 42
LINES = 2
MIN_MS = 833
MAX_MS = 7000
COLUMNS_PER_S = 17
# At most how many columns away from an even division a cue may end in order to end with a clause.
_CLAUSE_WORTH = 12


@dataclass(frozen=True, slots=True)
class Cue:
    """One subtitle: its lines, and the times it is shown from and to."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Wish:
    """A cue before it is placed: when its words are spoken."""

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]
    width: int


def cues(record: SessionRecord, what: str, columns: int = LINE_COLUMNS) -> list[Cue]:
    """Cues of a session. `what`: "source", "target", or "both" (one line of each); lines of at most `columns`."""
    wishes: list[_Wish] = []
    for utterance in by_time(record):
        wishes += _utterance(utterance, what, columns)
    return _place(wishes)


def by_time(record: SessionRecord) -> list[Utterance]:
    """Utterances in the order in which they begin."""
    return sorted(record.utterances, key=lambda utterance: utterance.start_s)


def span_ms(utterance: Utterance) -> tuple[int, int]:
    """Start and end of an utterance in whole milliseconds, the end behind the start."""
    start = max(0, round(utterance.start_s * 1000))
    return start, max(start + 1, round(utterance.end_s * 1000))


# ---------------------------------------------------------------- cutting


def _utterance(utterance: Utterance, what: str, columns: int) -> list[_Wish]:
    start, end = span_ms(utterance)
    source, target = (pieces(text, columns) for text in (utterance.source, utterance.target))
    pairs: list[tuple[list[Piece], list[Piece]]]
    if what == "both":
        count = max(_count(source, columns, end - start), _count(target, columns, end - start))
        pairs = list(zip_longest(_divide(source, count, 1, columns), _divide(target, count, 1, columns), fillvalue=[]))
    else:
        text = source if what == "source" else target
        count = _count(text, LINES * columns, end - start)
        pairs = [([], part) for part in _divide(text, count, LINES, columns)]
    blocks = [(tuple(_lines(a, columns) + _lines(b, columns)), max(width_of(a), width_of(b))) for a, b in pairs]
    whole = sum(width for _, width in blocks) or 1
    wishes, done = [], 0
    for lines, width in blocks:
        first = start + (end - start) * done // whole
        done += width
        wishes.append(_Wish(first, start + (end - start) * done // whole, lines, width))
    return wishes


def _count(text: Sequence[Piece], room: int, span: int) -> int:
    """How many cues a text should become: as few as fit into `room` columns each, but enough that none needs more than
    `MAX_MS` of `span`.
    """
    return min(len(text), max(math.ceil(width_of(text) / room), math.ceil(span / MAX_MS)))


def _divide(text: Sequence[Piece], count: int, lines: int, columns: int) -> list[list[Piece]]:
    """Cut a text into about `count` cues of even width that end with a clause where one is near."""
    cut: list[list[Piece]] = []
    rest = list(text)
    while rest:
        left = max(count - len(cut), math.ceil(width_of(rest) / (lines * columns)), 1)
        size = _best_size(rest, width_of(rest) / left, lines, columns)
        cut.append(rest[:size])
        rest = rest[size:]
    return cut


def _best_size(text: Sequence[Piece], wanted: float, lines: int, columns: int) -> int:
    """How many pieces to take: what fits in `lines`, near `wanted` columns, rather with a clause's end."""
    best, best_cost, worth = 1, math.inf, min(_CLAUSE_WORTH, wanted / 3)
    for size in range(1, len(text) + 1):
        width = width_of(text[:size])
        if size > 1 and (width > lines * columns or not _fits(text[:size], lines, columns)):
            break
        good = size == len(text) or ends_clause(text[size - 1])
        cost = abs(width - wanted) - (worth if good else 0)
        if cost <= best_cost:
            best, best_cost = size, cost
    return best


def _fits(text: Sequence[Piece], lines: int, columns: int) -> bool:
    return width_of(text) <= columns or (lines == LINES and _line_break(text, columns) is not None)


def _line_break(text: Sequence[Piece], columns: int) -> int | None:
    """Where to break a text into two lines that fit, as even as possible; None when no place will do."""
    options = []
    for index in range(1, len(text)):
        first, second = width_of(text[:index]), width_of(text[index:])
        if first <= columns and second <= columns:
            options.append((abs(first - second) - (_CLAUSE_WORTH if ends_clause(text[index - 1]) else 0), index))
    return min(options)[1] if options else None


def _lines(text: Sequence[Piece], columns: int) -> list[str]:
    """A cue's text as one line, or as two where one is too short."""
    if not text:
        return []
    index = _line_break(text, columns) if width_of(text) > columns else None
    return [join(text)] if index is None else [join(text[:index]), join(text[index:])]


# ---------------------------------------------------------------- timing


def _place(wishes: Sequence[_Wish]) -> list[Cue]:
    """Give every cue its time: from its words on, long enough to read, cut short by the next one, one after another."""
    placed: list[Cue] = []
    free = 0
    for index, wish in enumerate(wishes):
        start = max(wish.start_ms, free)
        end = max(wish.end_ms, start + wish.width * 1000 // COLUMNS_PER_S)
        if index + 1 < len(wishes):
            end = min(end, wishes[index + 1].start_ms)
        free = min(max(end, start + MIN_MS), start + MAX_MS)
        placed.append(Cue(start, free, wish.lines))
    return placed
