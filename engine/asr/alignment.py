"""Words of a text for a forced aligner, and their times out of its answer. Pure.

The aligner (Qwen3-ForcedAligner) is asked for two times a word, its start and its end, as classes of a fixed length.
It was trained on words between spaces and on single Chinese characters, without punctuation. Japanese and Korean
were cut by taggers there; here kana are cut as characters and Korean at its spaces.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from engine.asr.utterances import OPENERS

# First and last code points of scripts whose characters stand for themselves.
_SINGLE = (
    (0x3040, 0x30FF),  # kana
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Chinese characters, extension A
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),  # compatibility forms
    (0x20000, 0x2FA1F),  # further extensions
)


@dataclass(frozen=True, slots=True)
class Unit:
    """One word with its attached punctuation, what of it the aligner is asked for, and where it begins in the text."""

    text: str
    spoken: str
    start: int


def stands_alone(character: str) -> bool:
    """Whether a character is a word of its own: no spaces stand around it."""
    code = ord(character)
    return any(first <= code <= last for first, last in _SINGLE)


def is_spoken(character: str) -> bool:
    """Whether the aligner is told of a character: letters, figures and the apostrophe."""
    return character == "'" or unicodedata.category(character)[0] in "LN"


def units(text: str) -> list[Unit]:
    """The words of a text. Punctuation goes with the word in front of it, an opening mark with the one behind."""
    found: list[Unit] = []
    pieces = [piece for start, token in _tokens(text) for piece in _pieces(token, start)]
    waiting, waiting_at = "", 0
    for start, piece in pieces:
        spoken = "".join(filter(is_spoken, piece))
        if spoken:
            found.append(Unit(waiting + piece, spoken, waiting_at if waiting else start))
            waiting = ""
        elif found and not waiting and piece[0] not in OPENERS:
            last = found[-1]
            found[-1] = Unit(f"{last.text} {piece}", last.spoken, last.start)
        else:
            waiting, waiting_at = f"{waiting}{piece} ", waiting_at if waiting else start
    return found


def joined(words: Sequence[str]) -> str:
    """Words as a text: spaces between them, but none around characters that stand alone."""
    text = ""
    for word in words:
        if text and word and not (_alone_at(text, -1) or _alone_at(word, 0)):
            text += " "
        text += word
    return text


def _alone_at(text: str, end: int) -> bool:
    """Whether the first (0) or last (-1) spoken character of a text stands alone."""
    spoken = [character for character in text if is_spoken(character)]
    return bool(spoken) and stands_alone(spoken[end])


def _tokens(text: str) -> list[tuple[int, str]]:
    """What stands between spaces, with its place."""
    found, at = [], 0
    for token in text.split():
        at = text.index(token, at)
        found.append((at, token))
        at += len(token)
    return found


def _pieces(token: str, start: int) -> list[tuple[int, str]]:
    """A token cut around characters that stand alone."""
    cuts = [0]
    alone = single = False  # whether the piece so far holds a spoken character, and whether that is a single one
    for at, character in enumerate(token):
        if character in OPENERS and single:
            cuts.append(at)
            alone = single = False
        elif is_spoken(character):
            stands = stands_alone(character)
            if alone and (stands or single):
                cuts.append(at)
            alone, single = True, stands
    edges = [*dict.fromkeys(cuts), len(token)]
    return [(start + a, token[a:b]) for a, b in pairwise(edges) if a < b]


def mended(classes: Sequence[int]) -> list[float]:
    """The classes as times that never fall: those of the longest rising run stay, the others lie evenly between.

    The aligner decides on every time alone, so a few of them are out of order. O(n log n).
    """
    keep = _longest_rising(classes)
    if not keep:
        return []
    times: list[float] = [float(value) for value in classes]
    for at in range(keep[0]):
        times[at] = times[keep[0]]
    for left, right in pairwise(keep):
        step = (times[right] - times[left]) / (right - left)
        for at in range(left + 1, right):
            times[at] = times[left] + step * (at - left)
    for at in range(keep[-1] + 1, len(times)):
        times[at] = times[keep[-1]]
    return times


def _longest_rising(values: Sequence[int]) -> list[int]:
    """Indices of a longest run that never falls."""
    ends: list[int] = []  # value and index of the smallest end of a run of each length
    at_end: list[int] = []
    before: list[int] = []
    for index, value in enumerate(values):
        length = bisect_right(ends, value)
        before.append(at_end[length - 1] if length else -1)
        ends[length:] = [value] if length == len(ends) else [value, *ends[length + 1 :]]
        at_end[length:] = [index] if length == len(at_end) else [index, *at_end[length + 1 :]]
    run: list[int] = []
    index = at_end[-1] if at_end else -1
    while index >= 0:
        run.append(index)
        index = before[index]
    return run[::-1]


def spans(classes: Sequence[int], class_s: float, window_s: float) -> list[tuple[float, float]]:
    """Start and end of each word in seconds, inside the window. `classes`: two for each word."""
    times = [min(max(0.0, time * class_s), window_s) for time in mended(classes)]
    return list(zip(times[::2], times[1::2], strict=True))
