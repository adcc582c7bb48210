"""Faults of a translation that chrF does not show: left in the source language, or released and then contradicted.

Pure functions on text, defined here and used by `surtitle benchmark translator` alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import regex

_WORD = regex.compile(r"[\p{L}\p{N}]+")
_DIGIT = regex.compile(r"\p{N}")
COPIED = 2 / 3  # of a translation's words, for it to count as (nearly) the source
CONTENT_LETTERS = 4  # shorter words are mostly articles and prepositions
STEM_LETTERS = 4  # behind them stands mostly inflection


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Content words that were released early: how many, and those that the final does not have."""

    released: int
    contradicted: tuple[str, ...]


def words(text: str) -> list[str]:
    """Runs of letters and digits in lower case."""
    return [str(word) for word in _WORD.findall(text.casefold())]


def copied_share(text: str, source: str) -> float:
    """Share of a text's words that stand in the source as well, each source word used once; 0 for no words."""
    mine = Counter(words(text))
    return (mine & Counter(words(source))).total() / mine.total() if mine else 0.0


def untranslated(output: str, source: str, reference: str) -> bool:
    """Whether the output is nothing at all, or (nearly) the source: two thirds of its words, or more, are the source's.

    A sentence whose reference repeats as many (names, figures, one-word answers) is not counted.
    """
    if not words(output):
        return bool(words(reference))
    return copied_share(output, source) >= COPIED > copied_share(reference, source)


def contradiction(released: str, *finals: str) -> Contradiction:
    """What the finals contradict: released content words that stand in none of them.

    Content words have four letters or more, or a digit; two are the same when their first four letters are. A word that
    was released twice must stand there twice.
    """
    content = [_stem(word) for word in words(released) if len(word) >= CONTENT_LETTERS or _DIGIT.search(word)]
    confirmed: Counter[str] = Counter()
    for final in finals:
        confirmed |= Counter(_stem(word) for word in words(final))
    missing = Counter(content) - confirmed
    return Contradiction(len(content), tuple(missing.elements()))


def _stem(word: str) -> str:
    return word[:STEM_LETTERS]
