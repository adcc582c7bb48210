"""The result of a comparison of policies, as JSON and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from engine.benchmarks.curves.intervals import Comparison, Measured, compare, interval
from engine.benchmarks.curves.points import Outcome
from engine.evaluation.quality import quality

Result = tuple[Measured, Sequence[Outcome]]


def curves_of(results: Sequence[Result]) -> dict[str, list[Measured]]:
    """Points by policy, each from the fastest to the slowest."""
    curves: dict[str, list[Measured]] = {}
    for measured, _ in results:
        curves.setdefault(measured.point.policy.name, []).append(measured)
    return {name: sorted(points, key=lambda found: found.laal_s) for name, points in curves.items()}


def comparisons(curves: dict[str, list[Measured]]) -> list[Comparison]:
    """Every `alignatt` point against every other policy's curve."""
    others = [points for name, points in curves.items() if name != "alignatt"]
    return [compare(point, points) for point in curves.get("alignatt", []) for points in others]


def point_json(result: Result, references: Sequence[str], target_lang: str) -> dict[str, Any]:
    """One point of the result file. Times in seconds, shares in [0, 1]."""
    measured, outcomes = result
    units = sum(outcome.units for outcome in outcomes)
    return {
        **measured.point.as_dict(),
        "chrf": round(measured.chrf, 3),
        "chrf_interval": _rounded(interval(measured.chrf_samples)),
        "bleu": round(quality([outcome.hypothesis for outcome in outcomes], references, target_lang).bleu, 3),
        "laal_s": round(measured.laal_s, 4),
        "laal_interval_s": _rounded(interval(measured.laal_samples)),
        "erasure": sum(outcome.erased_units for outcome in outcomes) / units if units else None,
        "stable_before_final": round(sum(outcome.early_units for outcome in outcomes) / units, 4) if units else None,
        "releases_on_commit": sum(outcome.releases_on_commit for outcome in outcomes),
        "target_units": units,
    }


def comparison_json(found: Comparison) -> dict[str, Any]:
    """One comparison of the result file."""
    data = asdict(found)
    data["point"] = found.point.name
    for name in ("laal_s", "other_chrf", "difference"):
        data[name] = None if data[name] is None else round(data[name], 3)
    data["interval"] = _rounded(found.interval) if found.interval else None
    return data


def points_table(points: Sequence[dict[str, Any]]) -> Table:
    """The points as the terminal shows them."""
    table = Table(box=None, pad_edge=False)
    table.add_column("policy", no_wrap=True)
    for heading in ("LAAL s", "chrF", "95 %", "BLEU", "early", "erasure"):
        table.add_column(heading, justify="right")
    for point in points:
        low, high = point["chrf_interval"]
        table.add_row(
            f"{point['policy']['name']} {point['dial']}",
            f"{point['laal_s']:.2f}",
            f"{point['chrf']:.2f}",
            f"{low:.1f}–{high:.1f}",
            f"{point['bleu']:.2f}",
            "–" if point["stable_before_final"] is None else f"{100 * point['stable_before_final']:.0f} %",
            "–" if point["erasure"] is None else f"{point['erasure']:.3f}",
        )
    return table


def comparison_table(found: Sequence[dict[str, Any]]) -> Table:
    """Differences of chrF at equal latency."""
    table = Table(box=None, pad_edge=False)
    for heading in ("point", "LAAL s", "against", "difference", "95 %", "verdict"):
        table.add_column(heading, no_wrap=True)
    for row in found:
        known = row["difference"] is not None
        table.add_row(
            row["point"],
            f"{row['laal_s']:.2f}",
            row["other"],
            f"{row['difference']:+.2f}" if known else "–",
            f"{row['interval'][0]:+.1f} … {row['interval'][1]:+.1f}" if known else "–",
            row["verdict"],
        )
    return table


def _rounded(pair: tuple[float, float]) -> list[float]:
    return [round(value, 3) for value in pair]
