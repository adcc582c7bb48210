"""A draft's trace as a table: for each token where it looks, and why it is released or held."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from engine.schemas import Token


def trace_table(tokens: Sequence[Token], units: Sequence[str]) -> Table:
    """One row for each draft token. `units`: the source units that the tokens' `unit` counts.

    Masses: attention on accessible source (in), on source beyond the frontier (out), on the rest of the prompt, on
    earlier target.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for heading in ("token", "looks at"):
        table.add_column(heading, no_wrap=True)
    for heading in ("in", "out", "prompt", "target"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("reason")
    for token in tokens:
        at = token.unit
        table.add_row(
            Text(token.text, style="" if token.released else "dim"),
            "–" if at is None else f"{at}:{units[at] if at < len(units) else '?'}",
            *(_mass(value) for value in (token.accessible, token.inaccessible, token.prompt, token.suffix)),
            "released" if token.released else token.reason,
        )
    return table


def _mass(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
