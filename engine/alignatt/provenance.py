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

    `accessible`, `inaccessible`: float64, source mass before and from the frontier on. `prompt`: float32, mass on the
    rest of the prompt. `unit`: the source unit with the most mass, -1 when the row is unusable or has no source mass.
    `finite`, `missing`: bool.
    """

    accessible: NDArray[np.float64]
    inaccessible: NDArray[np.float64]
    prompt: NDArray[np.float32]
    unit: NDArray[np.int64]
    finite: NDArray[np.bool_]
    missing: NDArray[np.bool_]


def provenance(draft: Draft, accessible_units: int) -> Provenance:
    """Split the source mass of each token at `accessible_units`."""
    accessible, inaccessible = split_masses(draft)
    at = min(accessible_units, len(accessible) - 1)
    finite = finite_rows(draft)
    return Provenance(accessible[at], inaccessible[at], draft.prompt, looked_at(draft), finite, draft.missing)


def split_masses(draft: Draft) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Source mass of each token before and behind every frontier, each [units + 1, tokens]; index: accessible units.

    Along the first axis one never falls and the other never rises, also in their last bits.
    """
    units = np.ascontiguousarray(draft.rows.T, np.float64)
    edge = np.zeros((1, len(draft.rows)))
    with np.errstate(invalid="ignore"):
        before = np.concatenate([edge, units.cumsum(axis=0)])
        behind = np.concatenate([units[::-1].cumsum(axis=0)[::-1], edge])
    return before, behind


def finite_rows(draft: Draft) -> NDArray[np.bool_]:
    """Which tokens have a row without NaN and infinity: bool [tokens]."""
    masses = np.column_stack([draft.rows, draft.prompt, draft.suffix])
    return np.asarray(np.isfinite(masses).all(axis=1))


def looked_at(draft: Draft) -> NDArray[np.int64]:
    """The source unit with the most mass of each token, -1 when its row is unusable or has no source mass."""
    if not draft.rows.shape[1]:
        return np.full(len(draft.rows), -1)
    usable = np.logical_and(finite_rows(draft), ~draft.missing)
    filled = np.where(usable[:, None], draft.rows, 0.0)
    return np.where(filled.max(axis=1) > 0, filled.argmax(axis=1), -1)
