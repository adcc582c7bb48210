"""A translation session driven over simulated recognition: its captions, as a session log has them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator

from engine.alignatt.units import separator
from engine.evaluation.recognition import Step
from engine.mt.contract import CaptionState, TranslationSession
from engine.schemas import CaptionLine, Token

Clock = Callable[[], float]


def drive(
    session: TranslationSession,
    steps: Iterable[Step],
    source_lang: str,
    *,
    clock: Clock = time.perf_counter,
) -> Iterator[CaptionLine]:
    """Captions of a session that takes every step, in order. Raises `TranslationError`.

    `clock_s` is the simulated time without computation. `emitted_s` adds it: each call begins when its step is due and
    the call before it has ended, and lasts as long as it took (nothing is skipped, so a translator that is slower
    than speech falls behind for good).
    """
    free_s = 0.0
    for seq, step in enumerate(steps):
        started = clock()
        utterance = step.utterance
        state = session.update(
            utterance.utterance_id,
            utterance.committed,
            utterance.tail,
            step.clock_s,
            utterance.final,
            lambda: False,
        )
        free_s = max(free_s, step.clock_s) + clock() - started
        yield _caption(seq, step, state, free_s, separator(source_lang))


def _caption(seq: int, step: Step, state: CaptionState, emitted_s: float, joint: str) -> CaptionLine:
    utterance = step.utterance
    words = (*utterance.committed, *utterance.tail)
    covered = len(words) if state.final else min(state.covered_source_units or 0, len(words))
    return CaptionLine(
        seq=seq,
        utterance_id=state.utterance_id,
        stable=state.stable,
        held=state.held,
        source_stable=joint.join(word.text for word in utterance.committed),
        source_tail=joint.join(word.text for word in utterance.tail),
        covered_source_units=state.covered_source_units,
        final=state.final,
        reason=state.reason,
        start_s=words[0].start_s,
        end_s=words[-1].end_s,
        audio_s=words[-1].end_s,
        clock_s=step.clock_s,
        emitted_s=round(emitted_s, 4),
        lag_s=round(emitted_s - words[covered - 1].end_s, 4) if covered else None,
        stages=state.stages,
        tokens=tuple(Token(**token) for token in state.tokens) or None,
    )
