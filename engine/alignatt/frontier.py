"""The source frontier: how many source units of the open utterance are accessible."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Frontier:
    """`committed` of `units` source units will not change any more; in a `final` utterance all of them are accessible.

    A unit is one source word with its attached punctuation, so "Well, yes, of course," is 4 units.
    """

    committed: int
    units: int
    final: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.committed <= self.units:
            raise ValueError(f"A frontier of {self.committed} does not lie within {self.units} source units.")

    def accessible(self, border_margin: int, heard_margin: int | None = None) -> int:
        """Number of accessible units; the last `border_margin` committed ones do not count until the final.

        With a `heard_margin` all units but the last so many count as well, whether committed or not.
        """
        if self.final:
            return self.units
        heard = 0 if heard_margin is None else self.units - heard_margin
        return max(0, self.committed - border_margin, heard)
