"""What a request asks of the tap, as it travels to the workers beside the sampling parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

EXTRA_ARG = "surtitle_rows"
# What a check finds: relative error of the rebuilt output, difference of rows to their reference, count of bad rows.
OUTPUT, ROWS, NONFINITE = "output", "rows", "nonfinite"


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Rows wanted for one request. Positions count from 0 at the first prompt token.

    `source_start`, `source_tokens`: the source span, whose columns are kept one by one.
    `prompt_tokens`: length of the prompt without the released target; positions from there on are earlier target.
    `first_query`: position of the first query whose row is wanted.
    `check`: rebuild the attention output from the captured values too, and report how far it is from the engine's own.
    """

    source_start: int
    source_tokens: int
    prompt_tokens: int
    first_query: int
    check: bool = False

    def __post_init__(self) -> None:
        end = self.source_start + self.source_tokens
        if not (self.source_start >= 0 and self.source_tokens >= 0 and end <= self.prompt_tokens):
            raise ValueError(
                f"The source span {self.source_start}..{end} lies outside {self.prompt_tokens} prompt tokens."
            )
        if self.first_query < 0:
            raise ValueError("The first query position is negative.")

    def extra_args(self) -> dict[str, Any]:
        return {EXTRA_ARG: asdict(self)}


def row_request_of(sampling_params: Any) -> RowRequest | None:
    """The row request of a scheduled request, if it has one."""
    extra = getattr(sampling_params, "extra_args", None)
    data: Mapping[str, Any] | None = extra.get(EXTRA_ARG) if isinstance(extra, Mapping) else None
    return RowRequest(**data) if data else None


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one request: float32 [queries, heads, source tokens + 2], heads in the order of the engine's head list.

    The last two columns are the mass on the rest of the prompt and on earlier target; each row sums to 1.
    A query that was never captured is NaN throughout. `errors` holds what a check found, empty without one.
    """

    values: NDArray[np.float32]
    errors: tuple[tuple[str, float], ...] = ()

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.values).all())
