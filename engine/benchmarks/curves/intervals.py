"""Bootstrap over segments: intervals of each point, and whether a point lies on or above another policy's curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.benchmarks.curves.points import Outcome, Point
from engine.evaluation.quality import chrf_of, chrf_statistics

RESAMPLES = 1000
SEED = 1
LEVEL = 0.95

Samples = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measured:
    """A point with its corpus chrF and mean LAAL; `chrf_samples`, `laal_samples`: the same of each resample.

    The resamples are the same for every point, so that differences are paired.
    """

    point: Point
    chrf: float
    laal_s: float
    chrf_samples: Samples
    laal_samples: Samples


@dataclass(frozen=True, slots=True)
class Comparison:
    """An `alignatt` point against the curve of another policy at the same latency.

    `other_chrf` is interpolated between the other's points; beyond its slowest point it stays at that point's quality.
    `difference` = chrF of the point minus it, with its interval. `verdict`: "above" or "below" when the interval
    excludes 0, "on" when it does not, "alone" when the other policy is never as fast.
    """

    point: Point
    other: str
    laal_s: float
    other_chrf: float | None
    difference: float | None
    interval: tuple[float, float] | None
    verdict: str


def resample_indices(segments: int, resamples: int = RESAMPLES, seed: int = SEED) -> NDArray[np.int64]:
    """[resamples, segments], drawn with replacement."""
    return np.random.default_rng(seed).integers(0, segments, (resamples, segments))


def measure(
    point: Point, outcomes: Sequence[Outcome], references: Sequence[str], indices: NDArray[np.int64]
) -> Measured:
    """Corpus chrF, and LAAL as the mean over the segments that were translated at all."""
    statistics = chrf_statistics([outcome.hypothesis for outcome in outcomes], references)
    laal = np.array([np.nan if outcome.laal_s is None else outcome.laal_s for outcome in outcomes])
    return Measured(
        point,
        chrf_of(statistics),
        float(np.nanmean(laal)),
        np.array([chrf_of(statistics[rows]) for rows in indices]),
        np.nanmean(laal[indices], axis=1),
    )


def interval(samples: Samples, level: float = LEVEL) -> tuple[float, float]:
    """The middle `level` of the samples."""
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def compare(point: Measured, others: Sequence[Measured]) -> Comparison:
    """Compare with the curve of one other policy (`others`: its points, at least one)."""
    name = others[0].point.policy.name
    other = _at(point.laal_s, [(found.laal_s, found.chrf) for found in others])
    if other is None:
        return Comparison(point.point, name, point.laal_s, None, None, None, "alone")
    differences = []
    for at in range(len(point.chrf_samples)):
        curve = [(float(found.laal_samples[at]), float(found.chrf_samples[at])) for found in others]
        sample = _at(float(point.laal_samples[at]), curve)
        if sample is not None:
            differences.append(float(point.chrf_samples[at]) - sample)
    low, high = interval(np.array(differences))
    verdict = "above" if low > 0 else "below" if high < 0 else "on"
    return Comparison(point.point, name, point.laal_s, other, point.chrf - other, (low, high), verdict)


def _at(laal_s: float, curve: Sequence[tuple[float, float]]) -> float | None:
    """Quality of a curve at a latency: linear between its points, level beyond its slowest, None before its fastest."""
    ordered = sorted(curve)
    if laal_s < ordered[0][0]:
        return None
    return float(np.interp(laal_s, [x for x, _ in ordered], [y for _, y in ordered]))
