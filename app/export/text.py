"""Text for files: cleaning, width in columns, and the places where a line may break. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

# White space, except no-break spaces on their own: French sets them before ! ? : ;
_NO_BREAK = "\u00a0\u202f\u2007"
_SPACE = re.compile(rf"\s*[^\S{_NO_BREAK}]\s*")
_CLAUSE_END = tuple(".,;:!?…。、，．！？；：،؛؟।")
# Marks that must not begin a line (closing brackets, full stops) or end one (opening brackets).
_NO_START = frozenset("、。，．・：；？！）］｝」』】〉》〕ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ,.:;?!)]}»”’%")
_NO_END = frozenset("（［｛「『【〈《〔([{«“‘")


@dataclass(frozen=True, slots=True)
class Piece:
    """What no line break may cut: a word, or one character of a script without spaces. `space`: a blank goes before."""

    text: str
    width: int
    space: bool


def clean(text: str) -> str:
    """One line of text: white space runs become one blank; control and unpaired surrogate characters go."""
    shown = (char for char in text if char.isspace() or unicodedata.category(char) not in ("Cc", "Cs"))
    return _SPACE.sub(" ", "".join(shown)).strip()


@lru_cache(maxsize=4096)
def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def columns(text: str) -> int:
    """Width of a text: East Asian wide and full-width characters (and emoji) count 2, combining marks 0, the rest 1.

    By character and not by cluster: the parts of a joined emoji all count, which errs on the side of narrow lines.
    """
    return sum(map(_char_width, text))


def pieces(text: str, limit: int) -> list[Piece]:
    """Cut cleaned text where a line may break. No piece is wider than `limit` columns."""
    found: list[Piece] = []
    for number, word in enumerate(clean(text).split(" ")):
        for index, part in enumerate(_parts(word, limit)):
            found.append(Piece(part, columns(part), space=index == 0 and number > 0))
    return [piece for piece in found if piece.text]


def _graphemes(text: str) -> list[str]:
    found: list[str] = regex.findall(r"\X", text)
    return found


def _parts(word: str, limit: int) -> list[str]:
    """A word cut where its script allows a line break, then every part that is too wide between its graphemes."""
    parts: list[str] = []
    for grapheme in _graphemes(word):
        if parts and not _may_break(parts[-1], grapheme):
            parts[-1] += grapheme
        else:
            parts.append(grapheme)
    return [chunk for part in parts for chunk in _chunks(part, limit)]


def _chunks(part: str, limit: int) -> list[str]:
    if columns(part) <= limit:
        return [part]
    chunks, room = [""], limit
    clusters = _graphemes(part)
    if max(map(columns, clusters)) > limit:  # no writing has such a cluster, but text may
        clusters = list(part)
    for grapheme in clusters:
        width = columns(grapheme)
        if width > room:
            chunks.append("")
            room = limit
        chunks[-1] += grapheme
        room -= width
    return chunks


@lru_cache(maxsize=4096)
def _without_spaces(char: str) -> bool:
    """Whether the character belongs to a script whose lines may break behind any character."""
    return unicodedata.name(char, "").startswith(("CJK ", "HIRAGANA ", "KATAKANA "))


def _may_break(before: str, after: str) -> bool:
    """Whether a line may break between two neighbours that no blank separates."""
    if before[-1] in _NO_END or after[0] in _NO_START or {before[-1], after[0]} & set(_NO_BREAK):
        return False
    return _without_spaces(before[-1]) or _without_spaces(after[0])


def join(items: Iterable[Piece]) -> str:
    """Pieces as one line."""
    text = ""
    for piece in items:
        text += f" {piece.text}" if piece.space and text else piece.text
    return text


def width_of(items: Sequence[Piece]) -> int:
    """Width of `join(items)` in columns."""
    return sum(piece.width + (piece.space and index > 0) for index, piece in enumerate(items))


def right_to_left(text: str) -> bool:
    """Whether a text runs from right to left: its first letter with a direction decides."""
    strong = (unicodedata.bidirectional(char) for char in text)
    return next((kind for kind in strong if kind in ("L", "R", "AL")), "L") != "L"


def ends_clause(piece: Piece) -> bool:
    """Whether a break behind this piece is a good one."""
    return piece.text.rstrip("\"'”’»」』)").endswith(_CLAUSE_END)
