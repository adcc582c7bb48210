"""Simulated recognition: words with times, and what a recogniser would know of them at each moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engine.asr.contract import Utterance, Word


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


def recognise(utterance_id: int, words: Sequence[Word], timing: Timing) -> Iterator[Step]:
    """The states of one utterance in order; the last one, and only it, is final. No words, no states."""
    if not words:
        return
    end_s = words[-1].end_s + timing.delay_s + timing.commit_s
    known = (0, 0)
    for clock_s in _moments(words, timing, end_s):
        heard = _ended(words, clock_s - timing.delay_s)
        committed = _ended(words, clock_s - timing.delay_s - timing.commit_s)
        if (committed, heard) != known and heard:
            known = (committed, heard)
            utterance = Utterance(utterance_id, tuple(words[:committed]), tuple(words[committed:heard]))
            yield Step(clock_s, utterance)
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


def _ended(words: Sequence[Word], clock_s: float) -> int:
    return sum(word.end_s <= clock_s + 1e-6 for word in words)
