"""The segments on which one point loses most against another, with the trace of every decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text
from sacrebleu.metrics.chrf import CHRF

from engine.alignatt.units import separator, split_units
from engine.benchmarks.curves.intervals import Measured
from engine.benchmarks.curves.points import Outcome, Point, Spoken, captions_of
from engine.evaluation.recognition import Timing
from engine.evaluation.talks import Segment
from engine.evaluation.trace import trace_table
from engine.mt.contract import Translator

SIMILAR_S = 0.4


@dataclass(frozen=True, slots=True)
class Loss:
    """One segment: how much chrF the point loses on it against the other."""

    segment: int
    points: float


def worst_pair(alignatt: Sequence[Measured], others: Sequence[Measured]) -> tuple[Measured, Measured] | None:
    """The `alignatt` point that loses most chrF against the best other point of similar latency, and that point.

    Similar: within `SIMILAR_S`. None when no two points are that near. A point that wins everywhere may be returned,
    with the rival that comes nearest.
    """
    pairs = []
    for mine in alignatt:
        near = [other for other in others if other.laal_s <= mine.laal_s + SIMILAR_S / 2]
        near = [other for other in near if abs(other.laal_s - mine.laal_s) <= SIMILAR_S]
        if near:
            pairs.append((mine, max(near, key=lambda other: other.chrf)))
    return max(pairs, key=lambda pair: pair[1].chrf - pair[0].chrf, default=None)


def losses(mine: Sequence[Outcome], other: Sequence[Outcome], segments: Sequence[Segment], count: int) -> list[Loss]:
    """The `count` segments with the largest loss of segment chrF, largest first."""
    chrf = CHRF()
    found = [
        Loss(
            at,
            chrf.sentence_score(b.hypothesis, [segment.reference]).score
            - chrf.sentence_score(a.hypothesis, [segment.reference]).score,
        )
        for at, (a, b, segment) in enumerate(zip(mine, other, segments, strict=True))
    ]
    return sorted(found, key=lambda loss: -loss.points)[:count]


def explain(
    console: Console,
    loss: Loss,
    spoken: Spoken,
    points: tuple[Point, Point],
    translator: Translator,
    languages: tuple[str, str],
    timing: Timing,
) -> None:
    """Print one segment: reference, both translations, and how the first point came to its own."""
    segment = spoken.segment
    console.rule(f"segment {loss.segment} of {segment.span.talk}: {loss.points:+.1f} chrF lost")
    console.print(Text(f"source     {segment.source}"))
    console.print(Text(f"reference  {segment.reference}"))
    for point in points:
        console.print(Text(f"\n{point.name}", style="bold"))
        for caption in captions_of(point, spoken, translator, languages, timing, trace=point is points[0]):
            joint = separator(languages[0]) if caption.source_stable else ""
            source = Text(caption.source_stable).append(joint + caption.source_tail, style="dim")
            console.print(Text(f"{caption.clock_s:7.2f} s  ", style="cyan").append_text(source))
            if caption.tokens:
                console.print(trace_table(caption.tokens, split_units(source.plain, languages[0])))
            shown = Text(f"           {caption.stable}").append(caption.held, style="dim")
            console.print(shown.append(f"  [{caption.reason}]", style="dim"))
