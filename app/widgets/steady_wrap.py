"""Where rows of text begin, such that a letter that has been painted stays on its row while text is appended.

Plain greedy wrapping does not give that: "Wetter" at the end of a row, then "Wetterbericht" or "Wetter," does not fit
any more and the word jumps down; in scripts without spaces a new letter even moves breaks before it. Here a break that
has been painted is kept, and the row that is still open keeps what is on it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Protocol

import regex

LONGEST = 6_000  # letters of one utterance that are wrapped at all; far more than fills a screen
FORWARD = 48  # letters looked at for the end of a word that grew
_CLUSTER = regex.compile(r"\X")


class Measure(Protocol):
    """How much fits on a row. Indices count the letters (code points) of the text."""

    def natural(self, text: str, start: int) -> int:
        """Where the row that begins at `start` ends by the rules of the script; always greater than `start`."""
        ...

    def fits(self, piece: str) -> bool:
        """Whether a piece fits on one row when it may use the reserve at the row's end."""
        ...


def wrap(text: str, measure: Measure, painted: str = "", rows: Sequence[int] = ()) -> list[int]:
    """The beginnings of the rows of `text`, given what was `painted` before on rows that began at `rows`."""
    kept = shared(text, painted)
    starts = [start for start in rows if start < kept]
    if not starts:
        starts, kept = [_beginning(text)], 0
    if not text:
        return []
    while (end := _end(text, starts[-1], kept, measure)) < len(text):
        starts.append(end)
    return starts


def shared(one: str, other: str) -> int:
    """Length of the beginning that two texts have in common."""
    if one.startswith(other) or other.startswith(one):
        return min(len(one), len(other))
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one.startswith(other[:middle]):
            low = middle
        else:
            high = middle - 1
    return low


def _end(text: str, start: int, kept: int, measure: Measure) -> int:
    """The end of a row; what was painted on it, up to `kept`, stays on it."""
    end = measure.natural(text, start)
    if end >= kept or end >= len(text):
        return end
    floor = _whole_cluster(text, start, kept)
    for candidate in (_word_end(text, floor), _past_marks(text, floor)):
        if floor < candidate and measure.fits(text[start:candidate].rstrip()):
            floor = candidate
            break
    while floor < len(text) and text[floor] == " ":
        floor += 1
    return floor


def _beginning(text: str) -> int:
    """0, or for a text beyond all measure a place near its end."""
    if len(text) <= LONGEST:
        return 0
    start = len(text) - LONGEST
    return _whole_cluster(text, max(0, start - FORWARD), start)


def _whole_cluster(text: str, start: int, at: int) -> int:
    """The first end of a grapheme cluster at or after `at`, clusters being counted from `start`."""
    if at >= len(text) or (text[at].isascii() and text[at - 1].isascii()):
        return at
    here = max(start, at - FORWARD)
    for match in _CLUSTER.finditer(text, here):
        if match.end() >= at:
            return match.end()
    return len(text)


def _word_end(text: str, at: int) -> int:
    """The next space, or the end; `at` when the word is not to be seen to its end."""
    space = text.find(" ", at, at + FORWARD)
    if space >= 0:
        return space
    return len(text) if len(text) - at <= FORWARD else at


def _past_marks(text: str, at: int) -> int:
    """Behind the punctuation at this place, which belongs to the word before it."""
    end = at
    while end < len(text) and unicodedata.category(text[end]) in ("Po", "Pe", "Pf", "Pd"):
        end += 1
    return end
