"""One point of a curve: a policy at one setting, run over segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from engine.alignatt.policy import COMMIT_FAST_PATH, Policy
from engine.alignatt.units import split_units
from engine.asr.contract import Word
from engine.evaluation.captions import erased_units, translated
from engine.evaluation.drive import drive
from engine.evaluation.latency import line_segments, segment_laal_s
from engine.evaluation.recognition import Step, Timing, misheard_words, recognise, timed_words, vocabulary_of
from engine.evaluation.talks import Segment
from engine.mt.contract import Translator
from engine.mt.session import LocalTranslationSession
from engine.schemas import CaptionLine


@dataclass(frozen=True, slots=True)
class Point:
    """A policy at one setting. `dial` says in a few letters what distinguishes it from its neighbours.

    `every`: the policy is asked at every n-th report of the recogniser (its update interval).
    """

    policy: Policy
    dial: str
    every: int = 1

    @property
    def name(self) -> str:
        return f"{self.policy.name} {self.dial}"

    def as_dict(self) -> dict[str, Any]:
        return {"policy": asdict(self.policy), "dial": self.dial, "every": self.every}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a point made of one segment. `laal_s` is None where nothing was translated."""

    hypothesis: str
    laal_s: float | None
    units: int
    early_units: int
    erased_units: int
    releases_on_commit: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """A segment as a recogniser hears it: its words from 0 s on, and those that it gets wrong at first."""

    segment: Segment
    words: tuple[Word, ...]
    misheard: dict[int, str]


def speak(segments: Sequence[Segment], source_lang: str, misheard_rate: float = 0.0) -> list[Spoken]:
    """The segments with their words spread over their durations; `misheard_rate`: see `misheard_words`."""
    vocabulary = vocabulary_of([segment.source for segment in segments], source_lang) if misheard_rate else ()
    spoken = []
    for segment in segments:
        units = split_units(segment.source, source_lang)
        seed = f"{segment.span.talk} {segment.span.offset_s:.3f}"
        wrong = misheard_words(units, misheard_rate, vocabulary, seed)
        spoken.append(Spoken(segment, timed_words(units, 0.0, segment.span.duration_s), wrong))
    return spoken


def captions_of(
    point: Point,
    spoken: Spoken,
    translator: Translator,
    languages: tuple[str, str],
    timing: Timing,
    *,
    trace: bool = False,
) -> list[CaptionLine]:
    """The captions of one segment; the translator then forgets it. Raises `TranslationError`."""
    session = LocalTranslationSession(translator, point.policy, "curve", *languages, trace=trace)
    captions = list(drive(session, steps_of(point, spoken, timing), languages[0]))
    session.close()
    return captions


def steps_of(point: Point, spoken: Spoken, timing: Timing) -> Iterator[Step]:
    """The states of recognition at which the point is asked."""
    return recognise(0, spoken.words, replace(timing, step_s=timing.step_s * point.every), spoken.misheard)


def outcome_of(
    point: Point, spoken: Spoken, translator: Translator, languages: tuple[str, str], timing: Timing
) -> Outcome:
    """What a point makes of one segment. Raises `TranslationError`."""
    return _outcome(captions_of(point, spoken, translator, languages, timing), spoken.segment, languages[1])


def _outcome(captions: Sequence[CaptionLine], segment: Segment, target_lang: str) -> Outcome:
    utterance = translated(captions, target_lang)
    (scored,) = line_segments([utterance], [segment.reference])
    return Outcome(
        hypothesis=utterance.text,
        laal_s=segment_laal_s(scored, target_lang),
        units=len(utterance.units),
        early_units=sum(unit.before_final for unit in utterance.units),
        erased_units=erased_units([caption.stable for caption in captions], target_lang),
        releases_on_commit=sum(caption.reason == COMMIT_FAST_PATH for caption in captions),
    )
