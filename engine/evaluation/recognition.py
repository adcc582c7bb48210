"""Simulated recognition: words with times, and what a recogniser would know of them at each moment."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.alignatt.units import split_units
from engine.asr.contract import Utterance, Word
from engine.evaluation.captions import common_length


@dataclass(frozen=True, slots=True)
class Timing:
    """When words become known, in seconds.

    A word is heard (appears in the tail) `delay_s` after its end and is committed `commit_s` later; the utterance
    closes when its last word is committed. With `step_s` the recogniser reports every so often, counted from the
    start of the utterance; without it, at every change.
    """

    delay_s: float = 0.3
    commit_s: float = 1.0
    step_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """The state of an utterance at a moment: `clock_s` is the audio that has been heard."""

    clock_s: float
    utterance: Utterance


def timed_words(units: Sequence[str], start_s: float, duration_s: float) -> tuple[Word, ...]:
    """Words spread evenly over the time in which they were said."""
    pace_s = duration_s / max(1, len(units))
    return tuple(
        Word(unit, round(start_s + at * pace_s, 4), round(start_s + (at + 1) * pace_s, 4))
        for at, unit in enumerate(units)
    )


def misheard_words(units: Sequence[str], rate: float, vocabulary: Sequence[str], seed: str) -> dict[int, str]:
    """Which words are heard wrongly at first, and as what: index → another word of `vocabulary` that begins alike.

    A recogniser guesses the word that the end of its audio cuts off. Which ones it guesses wrongly is drawn with
    probability `rate`, always the same for the same `seed`.
    """
    wrong = {}
    for at, unit in enumerate(units):
        draw = int.from_bytes(hashlib.sha256(f"{seed} {at}".encode()).digest()[:4], "big") / 2**32
        others = [word for word in vocabulary if word != unit]
        if draw < rate and others:
            wrong[at] = max(others, key=lambda word: (common_length(word, unit), -abs(len(word) - len(unit)), word))
    return wrong


def vocabulary_of(texts: Sequence[str], language: str) -> tuple[str, ...]:
    """The different units of some texts, in order."""
    return tuple(sorted({unit for text in texts for unit in split_units(text, language)}))


_NOTHING: Mapping[int, str] = {}
_TICK_S = 1e-6


def recognise(
    utterance_id: int, words: Sequence[Word], timing: Timing, misheard: Mapping[int, str] = _NOTHING
) -> Iterator[Step]:
    """The states of one utterance in order; the last one, and only it, is final. No words, no states.

    A `misheard` word shows as another in the first report that has it; it and what follows are committed `commit_s`
    after the report that has it right.
    """
    if not words:
        return
    end_s = words[-1].end_s + timing.delay_s + timing.commit_s
    right_since = [word.end_s + timing.delay_s for word in words]
    waiting = set(misheard)
    known: tuple[Word, ...] = ()
    committed_before = 0
    for clock_s in _moments(words, timing, end_s):
        heard = sum(word.end_s + timing.delay_s <= clock_s + _TICK_S for word in words)
        for at in [at for at in waiting if at < len(known)]:
            right_since[at] = clock_s
            waiting.discard(at)
        settled = [at not in waiting and right_since[at] + timing.commit_s <= clock_s + _TICK_S for at in range(heard)]
        committed = settled.index(False) if False in settled else heard
        shown = tuple(
            replace(word, text=misheard[at]) if at in waiting else word for at, word in enumerate(words[:heard])
        )
        if heard and (committed, shown) != (committed_before, known):
            yield Step(clock_s, Utterance(utterance_id, shown[:committed], shown[committed:]))
        known, committed_before = shown, committed
    yield Step(round(end_s, 4), Utterance(utterance_id, tuple(words), (), final=True))


def _moments(words: Sequence[Word], timing: Timing, end_s: float) -> list[float]:
    """When the recogniser reports, before the end."""
    if timing.step_s:
        start_s, count = words[0].start_s, int((end_s - words[0].start_s) / timing.step_s) + 1
        moments = [start_s + at * timing.step_s for at in range(1, count + 1)]
    else:
        heard = [word.end_s + timing.delay_s for word in words]
        moments = sorted({round(at, 4) for at in (*heard, *(at + timing.commit_s for at in heard))})
    return [round(at, 4) for at in moments if at < end_s - 1e-4]
