"""What a sequence of captions shows: when each target unit became stable, what was withdrawn, what was held.

Pure functions over the captions of one log. A target unit is a word, or a character in scripts without spaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex

from engine.alignatt.units import separator
from engine.schemas import CaptionLine


@dataclass(frozen=True, slots=True)
class StableUnit:
    """A unit of the last stable text of an utterance, and when it stood as it stands there for good.

    `heard_s`: audio time of that caption, without computation; `emitted_s`: session time, with computation.
    """

    text: str
    heard_s: float
    emitted_s: float
    before_final: bool


@dataclass(frozen=True, slots=True)
class Translated:
    """One utterance of a log: its last stable text, its units, and when its words were said."""

    utterance_id: int
    text: str
    units: tuple[StableUnit, ...]
    start_s: float
    end_s: float
    closed: bool


def by_utterance(captions: Iterable[CaptionLine]) -> dict[int, list[CaptionLine]]:
    """Captions of each utterance, utterances in the order of their ids."""
    groups: dict[int, list[CaptionLine]] = {}
    for caption in captions:
        groups.setdefault(caption.utterance_id, []).append(caption)
    return dict(sorted(groups.items()))


def translated(states: Sequence[CaptionLine], target_lang: str) -> Translated:
    """What an utterance came to. `states`: its captions in order, at least one."""
    last = states[-1]
    stands = _stands_from(states)
    units = []
    for start, end in unit_spans(last.stable, target_lang):
        state = states[next(at for at, agreed in enumerate(stands) if agreed >= end)]
        units.append(StableUnit(last.stable[start:end], heard_s(state), state.emitted_s, not state.final))
    start_s = min((state.start_s for state in states if state.start_s is not None), default=0.0)
    end_s = last.end_s if last.end_s is not None else last.audio_s
    return Translated(last.utterance_id, last.stable, tuple(units), start_s, end_s, any(s.final for s in states))


def heard_s(caption: CaptionLine) -> float:
    """Audio time at which a caption could be made; a log without it falls back on its newest word."""
    return caption.audio_s if caption.clock_s is None else caption.clock_s


def unit_spans(text: str, target_lang: str) -> list[tuple[int, int]]:
    """Characters [start, end) of each target unit."""
    return [match.span() for match in regex.finditer(r"\S+" if separator(target_lang) else r"\S", text)]


def common_length(first: str, second: str) -> int:
    """Characters that two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def _stands_from(states: Sequence[CaptionLine]) -> list[int]:
    """For each caption, how many characters of the last stable text it and all later captions agree on."""
    last = states[-1].stable
    agreed, stands = len(last), []
    for state in reversed(states):
        agreed = min(agreed, common_length(state.stable, last))
        stands.append(agreed)
    return stands[::-1]


def erased_units(texts: Sequence[str], target_lang: str) -> int:
    """Units that were shown and then withdrawn or changed, over successive texts of one utterance."""
    erased = 0
    for before, after in pairwise(texts):
        kept = common_length(before, after)
        if kept < len(before):
            erased += sum(end > kept for _, end in unit_spans(before, target_lang))
    return erased


@dataclass(frozen=True, slots=True)
class Shares:
    """Held text, each in [0, 1] or None without captions to count.

    `captions`: captions of open utterances that show held text. `time`: part of the time between the first and the last
    caption in which held text is on screen.
    """

    captions: float | None
    time: float | None


def hold_shares(captions: Sequence[CaptionLine]) -> Shares:
    """How much of a session held text was showing."""
    partial = [caption for caption in captions if not caption.final]
    span_s = captions[-1].emitted_s - captions[0].emitted_s if captions else 0.0
    held_s = sum(after.emitted_s - before.emitted_s for before, after in pairwise(captions) if before.held.strip())
    return Shares(
        captions=sum(bool(caption.held.strip()) for caption in partial) / len(partial) if partial else None,
        time=held_s / span_s if span_s > 0 else None,
    )


def computed_ms(captions: Iterable[CaptionLine]) -> float:
    """Milliseconds of work in the stages of all captions; waiting in a queue is not work."""
    return sum(ms for caption in captions for stage, ms in caption.stages.items() if not stage.startswith("wait"))
