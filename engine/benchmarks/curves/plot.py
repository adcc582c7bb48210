"""The picture of the curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from engine.benchmarks.curves.intervals import Measured, interval

# Colours that differ in lightness too, and a mark for each policy: never by colour alone.
LOOKS = {
    "alignatt": ("#0b3d91", "o", "-"),
    "hold_n": ("#d1495b", "s", "--"),
    "wait_k": ("#edae49", "^", ":"),
    "local_agreement": ("#3c7a57", "D", "-."),
}


def draw(curves: Mapping[str, Sequence[Measured]], title: str, path: Path) -> None:
    """Draw chrF against LAAL with 95 % intervals, one line for each policy; the file's ending names its format."""
    with mpl.rc_context({"font.size": 10, "svg.hashsalt": "surtitle"}):
        figure = Figure(figsize=(7.2, 4.6), layout="constrained")
        axes = figure.subplots()
        for name, points in curves.items():
            colour, mark, line = LOOKS.get(name, ("#555555", "x", "-"))
            ordered = sorted(points, key=lambda measured: measured.laal_s)
            chrf = [interval(measured.chrf_samples) for measured in ordered]
            laal = [interval(measured.laal_samples) for measured in ordered]
            axes.errorbar(
                [measured.laal_s for measured in ordered],
                [measured.chrf for measured in ordered],
                xerr=[_below([m.laal_s for m in ordered], laal), _above([m.laal_s for m in ordered], laal)],
                yerr=[_below([m.chrf for m in ordered], chrf), _above([m.chrf for m in ordered], chrf)],
                label=name,
                color=colour,
                marker=mark,
                linestyle=line,
                markersize=5,
                elinewidth=0.6,
                alpha=0.9,
            )
        axes.set_xlabel("LAAL, seconds (by audio time)")
        axes.set_ylabel("chrF")
        axes.set_title(title)
        axes.grid(alpha=0.3)
        axes.legend()
        figure.savefig(path, dpi=150)


def _below(values: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[float]:
    return [max(0.0, value - low) for value, (low, _) in zip(values, intervals, strict=True)]


def _above(values: Sequence[float], intervals: Sequence[tuple[float, float]]) -> list[float]:
    return [max(0.0, high - value) for value, (_, high) in zip(values, intervals, strict=True)]
