"""Latency of translated segments: LAAL and LongYAAL (OmniSTEval), without and with computation.

Where a log's utterances are not the reference's segments, OmniSTEval's alignment assigns each target unit to a segment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import regex
from omnisteval.alignment import Word as AlignedWord
from omnisteval.alignment import align_sequences, process_alignment
from omnisteval.data import Instance
from omnisteval.scoring import LAALScorer, YAALScorer

from engine.evaluation.captions import StableUnit, Translated
from engine.evaluation.quality import spaceless
from engine.evaluation.talks import SpokenSpan

_TOKEN = regex.compile(r"[\p{L}\p{M}\p{N}]+(?:['’][\p{L}\p{M}]+)*|\S")


@dataclass(frozen=True, slots=True)
class ScoredSegment:
    """A segment of the reference with the target units that translate it. `recording_end_s`: end of its recording."""

    text: str
    reference: str
    units: tuple[StableUnit, ...]
    offset_s: float
    duration_s: float
    recording_end_s: float


@dataclass(frozen=True, slots=True)
class Latency:
    """Mean lag in seconds: `cu` by audio time alone, `ca` with computation. None when no segment has a translation."""

    laal_cu_s: float | None
    laal_ca_s: float | None
    long_yaal_cu_s: float | None
    long_yaal_ca_s: float | None


def line_segments(utterances: Sequence[Translated], references: Sequence[str]) -> list[ScoredSegment]:
    """One segment for each utterance of one log, reference line by reference line (equally many)."""
    end_s = max((utterance.end_s for utterance in utterances), default=0.0)
    return [
        ScoredSegment(
            utterance.text,
            reference,
            utterance.units,
            utterance.start_s,
            max(utterance.end_s - utterance.start_s, 0.001),
            end_s,
        )
        for utterance, reference in zip(utterances, references, strict=True)
    ]


def resegment(
    utterances: Sequence[Translated], references: Sequence[str], spans: Sequence[SpokenSpan], target_lang: str
) -> list[ScoredSegment]:
    """Assign the units of one log to the segments of one recording (SoftSegmenter, Polák et al. 2025).

    Words are aligned as lower-case tokens with punctuation split off, characters as they are.
    """
    by_character = spaceless(target_lang)
    reference_words = [
        AlignedWord(token, seq_id=at) for at, line in enumerate(references) for token in _tokens(line, by_character)
    ]
    units = [unit for utterance in utterances for unit in utterance.units]
    hypothesis_words = [
        # `original` carries the unit's number through the alignment, on its first token only
        AlignedWord(token, main=position == 0, original=str(number))
        for number, unit in enumerate(units)
        for position, token in enumerate(_tokens(unit.text, by_character))
    ]
    given: list[list[StableUnit]] = [[] for _ in references]
    if reference_words and hypothesis_words:
        aligned = align_sequences(reference_words, hypothesis_words, by_character)
        for word in process_alignment(*aligned, by_character):
            if word.main:
                given[word.seq_id].append(units[int(word.original)])
    end_s = max(span.offset_s + span.duration_s for span in spans)
    joint = "" if by_character else " "
    return [
        ScoredSegment(joint.join(unit.text for unit in mine), line, tuple(mine), span.offset_s, span.duration_s, end_s)
        for mine, line, span in zip(given, references, spans, strict=True)
    ]


def latency(segments: Sequence[ScoredSegment], target_lang: str) -> Latency:
    """Mean over segments that have a translation, as OmniSTEval computes it."""
    instances = [_instance(segment, target_lang) for segment in segments]
    return Latency(
        laal_cu_s=_seconds(LAALScorer(computation_aware=False)(instances)),
        laal_ca_s=_seconds(LAALScorer(computation_aware=True)(instances)),
        long_yaal_cu_s=_seconds(YAALScorer(computation_aware=False, is_longform=True)(instances)),
        long_yaal_ca_s=_seconds(YAALScorer(computation_aware=True, is_longform=True)(instances)),
    )


def segment_laal_s(segment: ScoredSegment, target_lang: str) -> float | None:
    """LAAL without computation of one segment."""
    return _seconds(LAALScorer(computation_aware=False)([_instance(segment, target_lang)]))


def _instance(segment: ScoredSegment, target_lang: str) -> Instance:
    by_character = spaceless(target_lang)
    reference = "".join(segment.reference.split()) if by_character else " ".join(segment.reference.split())
    return Instance(
        prediction=segment.text,
        reference=reference,
        latency_unit="char" if by_character else "word",
        source_length=1000 * segment.duration_s,
        emission_cu=[1000 * (unit.heard_s - segment.offset_s) for unit in segment.units],
        emission_ca=[1000 * (unit.emitted_s - segment.offset_s) for unit in segment.units],
        time_to_recording_end=1000 * (segment.recording_end_s - segment.offset_s),
    )


def _tokens(text: str, by_character: bool) -> list[str]:
    return [char for char in text if not char.isspace()] if by_character else _TOKEN.findall(text.lower())


def _seconds(milliseconds: float) -> float | None:
    return None if math.isnan(milliseconds) else milliseconds / 1000
