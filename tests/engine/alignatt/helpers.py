"""Drafts made by hand: pieces and, per token, the masses on each source unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.alignatt.draft import Draft


def make_draft(
    pieces: Sequence[str | bytes],
    looks_at: Sequence[int] | None = None,
    *,
    rows: Sequence[Sequence[float]] | None = None,
    units: int = 4,
    finish: str = "length",
    missing: Sequence[int] = (),
    source_mass: float = 0.4,
) -> Draft:
    """A draft whose token t puts all its source mass on unit `looks_at[t]`, or has the `rows` given."""
    encoded = tuple(piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    tokens = len(encoded)
    if rows is None:
        filled = np.zeros((tokens, units), np.float32)
        for at, unit in enumerate(looks_at or [0] * tokens):
            filled[at, unit] = source_mass
    else:
        filled = np.array(rows, np.float32).reshape(tokens, -1 if tokens else units)
    rest = 1 - filled.sum(axis=1)
    return Draft(
        prefill_ids=(),
        token_ids=tuple(range(100, 100 + tokens)),
        pieces=encoded,
        rows=filled,
        prompt=(rest / 2).astype(np.float32),
        suffix=(rest / 2).astype(np.float32),
        missing=np.isin(np.arange(tokens), list(missing)),
        finish=finish,
    )
