"""What local translators share around their models: a prompt in tokens, where an answer ends, the finished draft."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.alignatt.draft import Draft
from engine.mt.contract import CaptureHealth, Source
from engine.mt.prompt import Prompt, PromptLayout, Tokenise, byte_spans, fit, unit_of_tokens
from engine.mt.rows import reduce_rows, stack_rows

logger = logging.getLogger("surtitle.mt")

_reported = threading.Event()


class Vocabulary(Protocol):
    """Text and tokens of a model."""

    def encode(self, text: str) -> list[int]:
        """Tokens of plain text that continues another."""
        ...

    def piece(self, token: int, control: bool = False) -> bytes:
        """UTF-8 bytes of a token (possibly a part of a character); control tokens are empty unless `control`."""
        ...

    def ends_text(self, token: int) -> bool:
        """Whether the token ends the answer."""
        ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A prompt in tokens. `units`: the source unit of each position, or -1.

    `fixed_tokens`: how many of them depend on the languages alone.
    """

    prompt: Prompt
    ids: list[int]
    units: NDArray[np.int32]
    fixed_tokens: int


@dataclass(slots=True)
class Generated:
    """Tokens of one draft, with one row each: [heads, positions], or None when it was not delivered."""

    ids: list[int] = field(default_factory=list)
    rows: list[NDArray[np.float32] | None] = field(default_factory=list)
    finish: str = "length"


def prepare(layout: PromptLayout, source: Source, tokenise: Tokenise, wanted: int, limit: int) -> Prepared:
    """The prompt of a source, trimmed by `fit`."""
    prompt, tokens = fit(layout, source, tokenise, wanted, limit)
    units = unit_of_tokens(prompt.text, tokens.spans, prompt.unit_spans)
    fixed_bytes = byte_spans(prompt.text, [(0, prompt.fixed_prefix_chars)])[0][1]
    return Prepared(prompt, tokens.ids, units, sum(end <= fixed_bytes for _, end in tokens.spans))


def next_token(vocabulary: Vocabulary, best: int, stop: Sequence[str]) -> tuple[int | None, bool]:
    """The token to draft when the model proposes `best`, None at the end of the answer; and whether it is the last.

    Where a token holds a stop string behind other text (".\\n"), the token of that text alone takes its place.
    """
    if vocabulary.ends_text(best):
        return None, True
    piece = vocabulary.piece(best)
    cuts = [at for at in (piece.find(mark.encode()) for mark in stop) if at >= 0]
    if not cuts:
        return best, False
    before = vocabulary.encode(piece[: min(cuts)].decode(errors="ignore").rstrip())
    return (before[0], True) if len(before) == 1 else (None, True)


def as_draft(
    vocabulary: Vocabulary,
    prepared: Prepared,
    prefill_ids: Sequence[int],
    n_units: int,
    made: Generated,
    heads: int,
    health: CaptureHealth,
) -> Draft:
    """The draft of what was generated; its rows are counted in `health`, the first bad ones are one error line."""
    reduced = reduce_rows(stack_rows(made.rows, heads), prepared.units, len(prepared.ids), n_units)
    missing = np.array([row is None for row in made.rows], np.bool_)
    nonfinite = ~np.isfinite(reduced.prompt) & ~missing
    health.count(missing.tolist(), nonfinite.tolist())
    if (missing.any() or nonfinite.any()) and not _reported.is_set():
        _reported.set()
        logger.error(
            "%d of %d attention rows of a draft did not arrive and %d are no distributions (%s).",
            int(missing.sum()),
            len(missing),
            int(nonfinite.sum()),
            health.mode,
        )
    return Draft(
        prefill_ids=tuple(prefill_ids),
        token_ids=tuple(made.ids),
        pieces=tuple(vocabulary.piece(token) for token in made.ids),
        rows=reduced.rows,
        prompt=reduced.prompt,
        suffix=reduced.suffix,
        missing=missing,
        finish=made.finish,
        context_left_out=prepared.prompt.context_left_out,
    )


def no_draft(source: Source, prefill_ids: Sequence[int]) -> Draft:
    """The draft that was cancelled before it began."""
    none, rows = np.zeros(0, np.float32), np.zeros((0, len(source.units)), np.float32)
    return Draft(tuple(prefill_ids), (), (), rows, none, none, np.zeros(0, np.bool_), "cancelled")
