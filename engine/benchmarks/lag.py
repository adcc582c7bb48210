"""How far stable text is behind the voice, and how much of it came early: pure functions over a session log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.alignatt.policy import COMMIT_FAST_PATH
from engine.alignatt.units import separator, split_units
from engine.messages import Caption
from engine.schemas import CaptionLine

State = CaptionLine | Caption  # of a log, or as the engine tells it


@dataclass(frozen=True, slots=True)
class StableWord:
    """One target word of a final utterance: when it became stable and when its share of the source had been said.

    `said_s` is proportional, as in the ideal policy of average lagging: word i of n (from 1) belongs to the moment
    start + i/n · (end − start) of its utterance. It needs no alignment and so cannot be flattered by one.
    """

    utterance_id: int
    stable_s: float
    said_s: float
    before_final: bool

    @property
    def lag_s(self) -> float:
        return self.stable_s - self.said_s


def stable_words(captions: Iterable[State], target_lang: str) -> list[StableWord]:
    """Every target word (grapheme cluster, in scripts without spaces) of the utterances that became final."""
    by_utterance: dict[int, list[State]] = {}
    for caption in captions:
        by_utterance.setdefault(caption.utterance_id, []).append(caption)
    words: list[StableWord] = []
    for utterance_id, states in by_utterance.items():
        if states[-1].final:
            words += _words_of(utterance_id, states, target_lang)
    return words


def _words_of(utterance_id: int, states: Sequence[State], target_lang: str) -> list[StableWord]:
    last = states[-1]
    total = len(split_units(last.stable, target_lang))
    start_s, end_s = last.start_s or 0.0, last.end_s or last.audio_s
    words: list[StableWord] = []
    for state in states:
        for _ in range(len(words), min(total, _whole_words(state, last, target_lang))):
            said_s = start_s + (len(words) + 1) / total * (end_s - start_s)
            words.append(StableWord(utterance_id, state.emitted_s, said_s, not state.final))
    return words


def _whole_words(state: State, last: State, target_lang: str) -> int:
    """Words that are whole in `state`: a word that grows later counts when it is complete."""
    units = split_units(state.stable, target_lang)
    grown = separator(target_lang) and last.stable[len(state.stable) : len(state.stable) + 1].strip(" .,!?…:;")
    return len(units) - 1 if grown and units else len(units)


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """What one session's captions show. Shares are in [0, 1], `None` when there is nothing to share."""

    utterances: int
    target_words: int
    mean_lag_s: float | None
    p95_lag_s: float | None
    stable_before_final: float | None
    utterances_with_held: float | None
    releases_on_commit: int
    retractions: int


def session_figures(captions: Sequence[State], target_lang: str) -> SessionFigures:
    """Lag, early stability, held text, and stable text that was taken back (which must be 0)."""
    words = stable_words(captions, target_lang)
    lags = sorted(word.lag_s for word in words)
    finals = {caption.utterance_id for caption in captions if caption.final and caption.stable}
    held = {caption.utterance_id for caption in captions if caption.held.strip()}
    shown: dict[int, str] = {}
    retractions = 0
    for caption in captions:
        retractions += not caption.stable.startswith(shown.get(caption.utterance_id, ""))
        shown[caption.utterance_id] = caption.stable
    return SessionFigures(
        utterances=len(finals),
        target_words=len(words),
        mean_lag_s=sum(lags) / len(lags) if lags else None,
        p95_lag_s=lags[min(len(lags) - 1, int(0.95 * len(lags)))] if lags else None,
        stable_before_final=sum(word.before_final for word in words) / len(words) if words else None,
        utterances_with_held=len(finals & held) / len(finals) if finals else None,
        releases_on_commit=sum(caption.reason == COMMIT_FAST_PATH for caption in captions),
        retractions=retractions,
    )
