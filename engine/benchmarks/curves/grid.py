"""Which settings of each policy are compared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.alignatt.policy import Policy
from engine.benchmarks.curves.points import Point

# One dial from hasty to patient: how far from the end of what was heard a unit must lie, then from what is committed.
ALIGNATT: tuple[dict[str, Any], ...] = (
    {"heard_margin": 1},
    {"heard_margin": 2},
    {"heard_margin": 3},
    {"border_margin": 0},
    {"border_margin": 1},
    {"border_margin": 2},
)
HOLD_N = (1, 2, 3, 4, 6)
WAIT_K = (0, 1, 2, 3, 5)
AGREEMENT_EVERY = (1, 2, 3, 4)
_LETTERS = {"heard_margin": "heard", "border_margin": "m"}


def points_of(base: Policy) -> list[Point]:
    """The points that are compared. `base` gives the values that no dial sets."""
    return [
        *(Point(replace(base, name="alignatt", **values), _dial(values)) for values in ALIGNATT),
        *(Point(replace(base, name="hold_n", hold_n=n), f"n={n}") for n in HOLD_N),
        *(Point(replace(base, name="wait_k", wait_k=k), f"k={k}") for k in WAIT_K),
        *(Point(replace(base, name="local_agreement"), f"every {every}", every) for every in AGREEMENT_EVERY),
    ]


def _dial(values: dict[str, Any]) -> str:
    return " ".join(f"{_LETTERS[name]}={value:g}" for name, value in values.items())
