"""A draft: the tokens a translator proposes behind the released prefix, and where each one looked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Draft:
    """Tokens generated behind `prefill_ids`, with one provenance row per token.

    `pieces`: the UTF-8 bytes of each token (a token may hold a part of a character).
    `rows`: float32 [tokens, source units], attention mass of each unit, mean over the head set's heads. True
    probabilities: they sum, with the masses below, to 1.
    `prompt`: float32 [tokens], mass on the rest of the prompt; `suffix`: float32 [tokens], mass on earlier target.
    A row that could not be captured is NaN throughout. `missing`: bool [tokens], the row was never delivered.
    `finish`: "stop" (the model ended), "length" (the budget ended) or "cancelled".
    `context_left_out`: words of the session's context for which the prompt had no room.
    """

    prefill_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    pieces: tuple[bytes, ...]
    rows: NDArray[np.float32]
    prompt: NDArray[np.float32]
    suffix: NDArray[np.float32]
    missing: NDArray[np.bool_]
    finish: str
    context_left_out: int = 0

    def __post_init__(self) -> None:
        tokens = len(self.token_ids)
        shapes = (len(self.pieces), len(self.rows), len(self.prompt), len(self.suffix), len(self.missing))
        if any(length != tokens for length in shapes):
            raise ValueError(f"A draft of {tokens} tokens came with rows and pieces of lengths {shapes}.")

    @property
    def text(self) -> str:
        """The whole draft as text; bytes that do not (yet) form a character are left out."""
        return b"".join(self.pieces).decode("utf-8", errors="ignore")
