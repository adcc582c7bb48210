"""All scores of a set of session logs against one reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.alignatt.policy import COMMIT_FAST_PATH
from engine.evaluation.captions import (
    Translated,
    by_utterance,
    computed_ms,
    erased_units,
    hold_shares,
    translated,
)
from engine.evaluation.latency import Latency, ScoredSegment, latency, line_segments, resegment
from engine.evaluation.quality import Quality, quality
from engine.evaluation.talks import SpokenSpan
from engine.schemas import CaptionLine, EndLine, HealthLine, SessionLine, read_log

CAPTURE_CHANGED = "capture_changed"  # as `engine.mt.remote` says it
EAGER_MODES = frozenset({"eager", "hf_eager"})


class EvaluationError(Exception):
    """Logs that cannot be scored; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Log:
    """A session log that may be scored."""

    path: Path
    session: SessionLine
    captions: tuple[CaptionLine, ...]
    utterances: tuple[Translated, ...]
    end: EndLine | None

    @property
    def audio_s(self) -> float:
        """Audio of the session; of one that was cut off, up to its last caption."""
        return self.end.audio_s if self.end else self.captions[-1].audio_s


def load_log(path: Path) -> Log:
    """Read a log. Raises `LogError` for an invalid one, `EvaluationError` for one that may not be scored.

    Stable text that was changed is no error here: it is what erasure counts.
    """
    lines = read_log(path, append_only=False)
    session = lines[0]
    assert isinstance(session, SessionLine)
    captions = tuple(line for line in lines if isinstance(line, CaptionLine))
    if not captions:
        raise EvaluationError(f"Session log {path} holds no captions: there is nothing to score.")
    if not capture_verified(session):
        raise EvaluationError(
            f"Session log {path} was recorded with capture mode '{session.capture_mode}', whose attention rows no "
            "self-test has verified; record it again in a verified mode."
        )
    if any(isinstance(line, HealthLine) and line.state == CAPTURE_CHANGED for line in lines):
        raise EvaluationError(
            f"Session log {path} was recorded while its MT server changed how it captures attention: record it again."
        )
    utterances = tuple(translated(states, session.target_lang) for states in by_utterance(captions).values())
    return Log(path, session, captions, utterances, next((line for line in lines if isinstance(line, EndLine)), None))


def capture_verified(session: SessionLine) -> bool:
    """Whether the rows behind a log can be trusted: a self-test passed, or capture is eager and none failed.

    `capture_mode` is "mode", with the self-test's result in `info`, or "mode/result".
    """
    mode, _, result = session.capture_mode.partition("/")
    result = result or session.info.get("self_test", "")
    return result == "passed" or (mode in EAGER_MODES and result != "failed")


@dataclass(frozen=True, slots=True)
class Conduct:
    """How the sessions behaved, whatever they said. Shares in [0, 1]; None where there is nothing to count.

    `erasure`: stable units that were later changed or withdrawn ÷ units of the last stable text (0 by promise).
    `held_erasure`: the same for all that is on screen, held text included. `hold_share`, `hold_time_share`: see
    `captions.Shares`. `stable_before_final`: target units that were stable before their utterance closed.
    `real_time_factor`: computation ÷ audio; `wall_factor`: wall-clock time ÷ audio (at real pace about 1).
    """

    utterances: int
    unclosed_utterances: int
    captions: int
    target_units: int
    erasure: float | None
    held_erasure: float | None
    hold_share: float | None
    hold_time_share: float | None
    stable_before_final: float | None
    releases_on_commit: int
    real_time_factor: float | None
    wall_factor: float | None


def conduct(logs: Sequence[Log]) -> Conduct:
    """Counts over all logs; the shares of held text are means over logs, weighted by captions and by time."""
    captions = [caption for log in logs for caption in log.captions]
    utterances = [utterance for log in logs for utterance in log.utterances]
    units = [unit for utterance in utterances for unit in utterance.units]
    erased = [_erased(log) for log in logs]
    holds = [hold_shares(log.captions) for log in logs]
    partials = [sum(not caption.final for caption in log.captions) for log in logs]
    spans = [log.captions[-1].emitted_s - log.captions[0].emitted_s for log in logs]
    audio_s = sum(log.audio_s for log in logs)
    walls = [log.end.wall_s for log in logs if log.end]
    return Conduct(
        utterances=len(utterances),
        unclosed_utterances=sum(not utterance.closed for utterance in utterances),
        captions=len(captions),
        target_units=len(units),
        erasure=_ratio(sum(stable for stable, _ in erased), len(units)),
        held_erasure=_ratio(sum(shown for _, shown in erased), len(units)),
        hold_share=_weighted([hold.captions for hold in holds], partials),
        hold_time_share=_weighted([hold.time for hold in holds], spans),
        stable_before_final=_ratio(sum(unit.before_final for unit in units), len(units)),
        releases_on_commit=sum(caption.reason == COMMIT_FAST_PATH for caption in captions),
        real_time_factor=_ratio(computed_ms(captions) / 1000, audio_s),
        wall_factor=_ratio(sum(walls), audio_s) if len(walls) == len(logs) else None,
    )


def _erased(log: Log) -> tuple[int, int]:
    stable = shown = 0
    for states in by_utterance(log.captions).values():
        stable += erased_units([state.stable for state in states], log.session.target_lang)
        shown += erased_units([state.stable + state.held for state in states], log.session.target_lang)
    return stable, shown


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


def _weighted(values: Sequence[float | None], weights: Sequence[float]) -> float | None:
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    return _ratio(sum(value * weight for value, weight in pairs), sum(weight for _, weight in pairs))


def align(logs: Sequence[Log], references: Sequence[str], spans: Sequence[SpokenSpan] | None) -> list[ScoredSegment]:
    """Reference segments with their translations: utterance by utterance, or by alignment where spans are given.

    Raises `EvaluationError` when logs and reference do not fit.
    """
    if spans is None:
        found = sum(len(log.utterances) for log in logs)
        if found != len(references):
            raise EvaluationError(
                f"The logs hold {found} utterances but the reference has {len(references)} lines; give the segment "
                "times with --segments, so that the translation can be aligned to them."
            )
        lines = iter(references)
        return [part for log in logs for part in line_segments(log.utterances, [next(lines) for _ in log.utterances])]
    if len(spans) != len(references):
        raise EvaluationError(f"There are {len(spans)} segment times but {len(references)} reference lines.")
    talks = list(dict.fromkeys(span.talk for span in spans))
    if len(talks) != len(logs):
        raise EvaluationError(
            f"The segment times cover {len(talks)} recordings ({', '.join(talks)}) but {len(logs)} logs were given; "
            "one log for each recording is needed, in the same order."
        )
    segments: list[ScoredSegment] = []
    for log, talk in zip(logs, talks, strict=True):
        mine = [(line, span) for line, span in zip(references, spans, strict=True) if span.talk == talk]
        segments += resegment(log.utterances, [line for line, _ in mine], [span for _, span in mine], _target(logs))
    return segments


@dataclass(frozen=True, slots=True)
class Scores:
    """Everything `evaluate` prints."""

    quality: Quality
    latency: Latency
    conduct: Conduct
    segments: int

    def as_dict(self) -> dict[str, Any]:
        """One flat JSON object."""
        return {
            "segments": self.segments,
            **asdict(self.quality),
            **asdict(self.latency),
            **asdict(self.conduct),
        }


def score(logs: Sequence[Log], references: Sequence[str], spans: Sequence[SpokenSpan] | None = None) -> Scores:
    """Score logs of one target language, consecutive parts of one reference. Raises `EvaluationError`."""
    language = _target(logs)
    segments = align(logs, references, spans)
    texts = [segment.text for segment in segments], [segment.reference for segment in segments]
    return Scores(quality(*texts, language), latency(segments, language), conduct(logs), len(segments))


def _target(logs: Sequence[Log]) -> str:
    languages = sorted({log.session.target_lang for log in logs})
    if len(languages) != 1:
        raise EvaluationError(f"The logs are in several target languages ({', '.join(languages)}); score each alone.")
    return languages[0]
