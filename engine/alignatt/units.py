"""Source units: one source word with its attached punctuation; in scripts without spaces, one grapheme cluster."""

from __future__ import annotations

import regex

SPACELESS_LANGUAGES = frozenset({"zh", "ja", "th", "lo", "km", "my", "yue"})
_LATIN_RUN_OR_CLUSTER = regex.compile(r"[\p{Latin}\p{N}'’._-]+|\s+|\X")
_ATTACHED = regex.compile(r"[\p{P}\p{S}]+")


def separator(language: str) -> str:
    """What joins the units of a language: a space, or nothing."""
    return "" if language.split("-")[0].lower() in SPACELESS_LANGUAGES else " "


def split_units(text: str, language: str) -> list[str]:
    """The source units of a text; joined by `separator(language)` they give the text with single spaces.

    Punctuation belongs to the unit before it, so "Well, yes, of course," gives 4 units. A free-standing dash or the
    like joins the word before it as well, for it is not a word of its own.
    """
    if separator(language):
        units: list[str] = []
        for word in text.split():
            if units and _ATTACHED.fullmatch(word):
                units[-1] += f" {word}"
            else:
                units.append(word)
        return units
    units = []
    for match in _LATIN_RUN_OR_CLUSTER.finditer(" ".join(text.split())):
        piece = match.group()
        if units and (piece.isspace() or _ATTACHED.fullmatch(piece)):
            units[-1] += piece
        else:
            units.append(piece)
    return units
