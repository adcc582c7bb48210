"""Where one utterance ends and the next begins, read from the words alone. Pure; shared by all recognisers.

Source units reach the reader one utterance at a time, so a cut must fall where a sentence ends ("3.5", "Dr." and
"e.g." are no ends) or, when nobody ends a sentence for too long, at the pause that hurts least.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from engine.asr.contract import Word

SENTENCE_MARKS = ".!?…。！？｡．؟।"
CLOSERS = "\"'”’»›)]}」』）】〉》"
OPENERS = "\"'“‘„«‹([{「『（【〈《¿¡"
CLAUSE_MARKS = ",;:—–、，；：،"
# What a model writes behind the last word because the audio ends there, and takes back when it goes on.
OPEN_END_MARKS = ".…!?-–—。！？"

# Marks that end a sentence whatever follows. A full stop, an ellipsis and the Latin-script dots may not.
_ALWAYS = "!?。！？｡؟।"

# What a clause mark is worth against silence when the best pause is sought, in seconds.
CLAUSE_BONUS_S = 0.25

# Never the end of a sentence: something always follows.
_TITLES = frozenset(
    "mr mrs ms dr prof st sr jr rev hon gen col capt cmdr lt sgt maj gov sen rep pres mt ft fig figs eq vs viz cf ca "
    "approx nr hr fr frl sig sig.ra dott mme mlle mgr sra srta dña ud uds pág bzw z.b d.h u.a e.g i.e".split()
)
# The end of a sentence only where the next word could hardly be the rest of a name or of a number.
_AMBIGUOUS = frozenset(
    "etc inc ltd co corp bros dept est ave blvd a.m p.m am pm jan feb mar apr jun jul aug sep sept oct nov dec "
    "ecc usw ph.d b.c a.d p.s".split()
)
_STARTERS = frozenset(
    "the a an and but so or if when while after before in on at it he she we you they i this that these those there "
    "here what why how who where now then however because our my your his her their its not no yes well let".split()
)
# An abbreviation in front of a figure only: "No. 5", "vol. 2", "p. 30".
_BEFORE_FIGURES = frozenset("no nos vol vols p pp ch sec art op núm n".split())
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S, e.g, z.B
_INITIAL = re.compile(r"[A-ZÀ-ÖØ-Þ]")


def ends_sentence(text: str, following: str | None = None) -> bool:
    """Whether a word (with its attached punctuation) ends a sentence.

    `following` is the next word if one is known; without it the doubtful cases are decided on the word alone.
    """
    body = text.strip().rstrip(CLOSERS)
    if not body or body[-1] not in SENTENCE_MARKS:
        return False
    mark = body[-1]
    core = body.rstrip(SENTENCE_MARKS).lstrip(OPENERS)
    following = following.strip().lstrip(OPENERS) if following else None
    if mark in _ALWAYS:
        return True
    if following and following[0].islower():
        return False
    if mark != "." or body.endswith(".."):
        return True
    return not _is_abbreviation(core, following)


def _is_abbreviation(core: str, following: str | None) -> bool:
    """Whether the full stop behind `core` belongs to the word. "I" is a word, other single capitals are initials."""
    lower = core.casefold()
    if lower in _TITLES:
        return True
    if lower in _BEFORE_FIGURES:
        return following is not None and following[0].isdigit()
    if _INITIAL.fullmatch(core):
        return core != "I"
    if lower in _AMBIGUOUS or _DOTTED.fullmatch(core):
        return following is None or following.casefold().rstrip(CLAUSE_MARKS) not in _STARTERS
    return False


def ends_clause(text: str) -> bool:
    """Whether a word carries a comma or another mark behind which a listener could pause."""
    body = text.strip().rstrip(CLOSERS)
    return bool(body) and body[-1] in CLAUSE_MARKS + SENTENCE_MARKS


def best_pause(words: Sequence[Word], fewest: int, most: int, least_s: float = 0.0) -> int:
    """How many words to put before the cut: as many as lead to the longest gap, clause ends preferred.

    Only cuts behind `fewest` (at least 1) to `most` words and worth `least_s` or more are looked at. Behind the very
    last word nothing is known: it counts as no gap. Of equal gaps the later one. 0 when there is none.
    """
    best, best_value = 0, least_s
    for count in range(max(1, fewest), min(most, len(words)) + 1):
        word, following = words[count - 1], words[count] if count < len(words) else None
        gap = max(0.0, following.start_s - word.end_s) if following else 0.0
        value = gap + (CLAUSE_BONUS_S if ends_clause(word.text) else 0.0)
        if value >= best_value:
            best, best_value = count, value
    return best
