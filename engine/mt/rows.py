"""From attention over positions to mass on source units. Pure numpy.

Masses are raw probabilities: nothing is renormalised over the source, so a token's row, its mass on the rest of
the prompt and its mass on earlier target sum to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MASS_TOLERANCE = 0.02  # a softmax rounded to bfloat16 stays within 0.004


@dataclass(frozen=True, slots=True)
class UnitRows:
    """Provenance of tokens: `rows` float32 [tokens, units], `prompt` and `suffix` float32 [tokens]."""

    rows: NDArray[np.float32]
    prompt: NDArray[np.float32]
    suffix: NDArray[np.float32]


def stack_rows(rows: Sequence[NDArray[np.float32] | None], heads: int) -> NDArray[np.float32]:
    """Rows of single tokens, each [heads, positions it sees] or None, as one [heads, tokens, positions].

    Positions that a token does not see are 0; a row that was never delivered is NaN throughout.
    """
    positions = max((row.shape[1] for row in rows if row is not None), default=0)
    stacked = np.zeros((heads, len(rows), max(positions, 1)), np.float32)
    for token, row in enumerate(rows):
        if row is None:
            stacked[:, token] = np.nan
        else:
            stacked[:, token, : row.shape[1]] = row
    return stacked


def unit_masses(
    attention: NDArray[np.float32], unit_of_position: NDArray[np.int32], prompt_length: int, n_units: int
) -> NDArray[np.float64]:
    """Mass of every row on each unit, on the rest of the prompt, and behind it: [..., units + 2].

    `attention`: [..., positions]; `unit_of_position`: the unit of each prompt position, or -1. A row that is no
    distribution (a value that is not finite, or a sum that is not 1) is NaN throughout.
    """
    positions = attention.shape[-1]
    inside = min(prompt_length, positions)
    column = np.full(positions, n_units + 1)
    units = unit_of_position[:inside]
    column[:inside] = np.where(units < 0, n_units, units)
    sums = np.zeros((positions, n_units + 2))
    sums[np.arange(positions), column] = 1.0
    finite = np.isfinite(attention).all(axis=-1, keepdims=True)
    masses = np.where(finite, attention, 0).astype(np.float64) @ sums
    total = masses.sum(axis=-1, keepdims=True)
    return np.where(finite & (np.abs(total - 1) <= MASS_TOLERANCE), masses, np.nan)


def reduce_rows(
    attention: NDArray[np.float32], unit_of_position: NDArray[np.int32], prompt_length: int, n_units: int
) -> UnitRows:
    """Mean over heads of the mass on each source unit. `attention`: probabilities [heads, tokens, positions].

    A token with one head whose row is no distribution is NaN throughout: a mean over the others would be another
    measure than the one that the head set was calibrated with.
    """
    masses = unit_masses(attention, unit_of_position, prompt_length, n_units).mean(axis=0).astype(np.float32)
    return UnitRows(masses[:, :n_units], masses[:, n_units], masses[:, n_units + 1])
