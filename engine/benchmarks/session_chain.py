"""What a session's record says of its chain: latency of each stage, overlap of recogniser and translator. Pure.

Stages, in the way of the data; milliseconds:

- `capture`: from the moment a block of audio was sent to the moment voice activity has it. A block that comes while the
  recogniser is busy waits for it, and is then taken with all that came besides.
- `voice_activity`: its computation for what came together.
- `recogniser`: one decode of the window, without `alignment`: word times by the aligner, where the recogniser has one.
- `wait`: a heard state waits for the translator; a newer one takes its place.
- `draft`: the translator's model; `decision`: what of the draft is released.
- `caption`: from the session to the process that shows it.
- `whole`: from the last audio that a caption has heard, when it was sent, to the arrival of the caption.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from engine.benchmarks.session_play import Heard, Record
from engine.spans import Span

Interval = tuple[float, float]
CLOCK_SLACK_S = 0.001  # two ways of counting the same sample


def chain(record: Record, played_s: float) -> dict[str, Any]:
    """Stages, the recogniser's and the translator's work, and how they overlap. `played_s`: audio sent so far."""
    by_stage: dict[str, list[Span]] = {}
    for span in record.spans:
        by_stage.setdefault(span.stage, []).append(span)
    recogniser = by_stage.get("recogniser", [])
    translation = by_stage.get("translation", [])
    capture = captured(by_stage.get("voice_activity", []), record.sent)
    drafts = [h.caption.stages["mt_ms"] for h in record.captions if "mt_ms" in h.caption.stages]
    alignment = by_stage.get("alignment", [])
    stages = {
        "capture": [1000 * late_s for _, late_s in capture],
        "voice_activity": [_ms(span) for span in by_stage.get("voice_activity", [])],
        "recogniser": [_ms(span) - sum(_ms(part) for part in _inside(alignment, span)) for span in recogniser],
        "alignment": [_ms(span) for span in alignment],
        "wait": _of_captions(record.captions, "wait_ms"),
        "draft": drafts,
        "decision": _of_captions(record.captions, "decide_ms"),
        "caption": [1000 * (heard.received_s - heard.told_s) for heard in record.captions],
        "whole": whole(record.captions, record.sent),
    }
    busy_s = sum(_ms(span) for span in recogniser) / 1000
    return {
        "stage_ms": {name: quantiles(values) for name, values in stages.items() if values},
        "recogniser": {
            "updates": len(recogniser),
            "busy_s": round(busy_s, 2),
            "real_time_factor": round(busy_s / played_s, 4) if played_s else None,
        },
        "translator": {
            "drafts": len(drafts),
            "superseded": sum(heard.caption.reason == "superseded" for heard in record.captions),
            "busy_s": round(sum(_ms(span) for span in translation) / 1000, 2),
        },
        "overlap": overlap(recogniser, translation, capture),
    }


def overlap(recogniser: Sequence[Span], translation: Sequence[Span], capture: Sequence[Interval]) -> dict[str, Any]:
    """How both work at the same time. `capture`: (moment that audio was taken, seconds that it had waited).

    A draft that blocked audio would show: no update would begin while it runs, and audio that comes meanwhile would
    wait for its end.
    """
    heard, drafted = _union(recogniser), _union(translation)
    both_s = sum(max(0.0, min(a[1], b[1]) - max(a[0], b[0])) for a in heard for b in drafted)
    drafted_s = sum(end - begin for begin, end in drafted)
    during = [1000 * late_s for at_s, late_s in capture if _covers(drafted, at_s)]
    otherwise = [1000 * late_s for at_s, late_s in capture if not _covers(drafted, at_s)]
    begun = sum(_covers(drafted, span.began_s) for span in recogniser)
    return {
        "translator_busy_s": round(drafted_s, 2),
        "both_busy_s": round(both_s, 2),
        "share_of_translator": round(both_s / drafted_s, 4) if drafted_s else None,
        "updates_begun_during_translation": begun,
        "capture_ms_during_translation": quantiles(during),
        "capture_ms_otherwise": quantiles(otherwise),
    }


def captured(spans: Sequence[Span], sent: Sequence[Interval]) -> list[Interval]:
    """For each piece of audio that voice activity took: when, and how many seconds after it was sent."""
    found = []
    for span in spans:
        at_s = _sent_at(sent, span.at_s)
        if at_s is not None:
            found.append((span.began_s, span.began_s - at_s))
    return found


def whole(captions: Sequence[Heard], sent: Sequence[Interval]) -> list[float]:
    """Milliseconds from the last audio that each caption has heard to its arrival."""
    found = []
    for heard in captions:
        at_s = _sent_at(sent, heard.caption.clock_s)
        if at_s is not None:
            found.append(1000 * (heard.received_s - at_s))
    return found


def quantiles(values: Sequence[float]) -> dict[str, float] | None:
    """Median, 95 % and the most, with their number; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return {
        "count": len(ordered),
        "p50": round(statistics.median(ordered), 2),
        "p95": round(ordered[math.ceil(0.95 * (len(ordered) - 1))], 2),
        "most": round(ordered[-1], 2),
    }


def _sent_at(sent: Sequence[Interval], clock_s: float | None) -> float | None:
    """When the block with this moment of the session in it was sent; None behind the last."""
    if clock_s is None:
        return None
    at = bisect.bisect_left(sent, clock_s - CLOCK_SLACK_S, key=lambda block: block[0])
    return sent[at][1] if at < len(sent) else None


def _union(spans: Iterable[Span]) -> list[Interval]:
    """What is covered by any of the spans, as intervals that do not touch."""
    found: list[Interval] = []
    for begin, end in sorted((span.began_s, span.ended_s) for span in spans if span.ended_s is not None):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def _covers(intervals: Sequence[Interval], at_s: float) -> bool:
    at = bisect.bisect_right(intervals, at_s, key=lambda interval: interval[0]) - 1
    return at >= 0 and at_s < intervals[at][1]


def _inside(parts: Sequence[Span], span: Span) -> list[Span]:
    assert span.ended_s is not None
    return [part for part in parts if span.began_s <= part.began_s < span.ended_s]


def _of_captions(captions: Sequence[Heard], stage: str) -> list[float]:
    return [heard.caption.stages[stage] for heard in captions if stage in heard.caption.stages]


def _ms(span: Span) -> float:
    assert span.ended_s is not None
    return 1000 * (span.ended_s - span.began_s)
