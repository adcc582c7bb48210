"""Provenance: how the attention of each draft token divides over accessible source, inaccessible source, the rest
of the prompt and earlier target. The four masses of a finite row sum to 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.alignatt.draft import Draft


@dataclass(frozen=True, slots=True)
class Provenance:
    """Arrays over the tokens of a draft.

    `accessible`, `inaccessible`: float32, source mass before and from the frontier on. `prompt`: float32, mass on the
    rest of the prompt. `unit`: the source unit with the most mass, -1 when the row is unusable or has no source mass.
    `finite`, `missing`: bool.
    """

    accessible: NDArray[np.float32]
    inaccessible: NDArray[np.float32]
    prompt: NDArray[np.float32]
    unit: NDArray[np.int64]
    finite: NDArray[np.bool_]
    missing: NDArray[np.bool_]


def provenance(draft: Draft, accessible_units: int) -> Provenance:
    """Split the source mass of each token at `accessible_units`."""
    rows = draft.rows
    finite = np.isfinite(rows).all(axis=1) & np.isfinite(draft.prompt) & np.isfinite(draft.suffix)
    usable = finite & ~draft.missing
    accessible = rows[:, :accessible_units].sum(axis=1)
    inaccessible = rows[:, accessible_units:].sum(axis=1)
    if rows.shape[1]:
        filled = np.where(usable[:, None], rows, 0.0)
        unit = np.where(filled.max(axis=1) > 0, filled.argmax(axis=1), -1)
    else:
        unit = np.full(len(rows), -1)
    return Provenance(accessible, inaccessible, draft.prompt, unit, finite, draft.missing)
