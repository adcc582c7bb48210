"""How a recogniser's tail turns out: when words are first shown and committed, and whether they were right at first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from engine.asr.agreement import normalise
from engine.asr.contract import Utterance, Word


@dataclass(frozen=True, slots=True)
class Showing:
    """A word of a closed utterance. `end_s`: its end; `shown_s`, `committed_s`: when it, or another in its place, was
    first shown and when it was committed. `wrong`: it was shown as another word at first."""

    end_s: float
    shown_s: float
    committed_s: float
    wrong: bool


def first_showings(states: Sequence[tuple[float, Utterance]]) -> list[Showing]:
    """The words of one utterance; `states`: what was reported of it and when, in order, the last one final."""
    words = states[-1][1].committed
    shown: dict[int, tuple[float, bool]] = {}
    committed_s: list[float] = []
    for at_s, utterance in states:
        done = len(committed_s)
        committed_s += [at_s] * (len(utterance.committed) - done)
        for index, wrong in _places((*utterance.committed, *utterance.tail)[done:], words[done:]):
            shown.setdefault(done + index, (at_s, wrong))
    found = []
    for at, word in enumerate(words):
        shown_s, wrong = shown.get(at, (committed_s[at], False))
        found.append(Showing(word.end_s, shown_s, committed_s[at], wrong))
    return found


def _places(heard: Sequence[Word], words: Sequence[Word]) -> Iterable[tuple[int, bool]]:
    """For each word heard that stands in the place of one of `words`: which one, and whether it is another."""
    before, after = ([normalise(word.text) for word in side] for side in (heard, words))
    for what, first, last, start, end in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what in ("equal", "replace"):
            for index in range(start, min(end, start + last - first)):
                yield index, what == "replace"
