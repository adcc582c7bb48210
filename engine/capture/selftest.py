"""The self-test: real requests through the engine as it runs, whose rows must be those of the attention it computed.

Odd lengths and three requests at once, so that graphs run padded; the same prompts again, so that prefixes are cached;
one prompt beyond the sliding window; a single one. It passes only if every row is there and finite, sums to 1, agrees
with plain torch on the captured values, and if the attention output rebuilt from them is the engine's own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from engine.capture.request import NONFINITE, OUTPUT, ROWS, RowRequest, Rows

if TYPE_CHECKING:
    from engine.capture.host import CaptureEngine

TOKENS = 8
# Relative error of the rebuilt output by type of the KV cache: rounding of the output itself, and of the weights in it.
OUTPUT_TOLERANCE = {"bfloat16": 0.003, "float16": 0.001, "float32": 1e-4}
ROW_TOLERANCE = 2e-3
SUM_TOLERANCE = 2e-3


def verdict(rows: Rows, dtype: str) -> str | None:
    """Why checked rows cannot be trusted, or None."""
    errors = dict(rows.errors)
    if not rows.finite or errors.get(NONFINITE, 1.0):
        return "a row is missing or not finite"
    off = float(np.abs(rows.values.sum(axis=-1) - 1).max()) if rows.values.size else 0.0
    if off > SUM_TOLERANCE:
        return f"a row sums to 1 ± {off:.3g}"
    if (difference := errors.get(ROWS, 1.0)) > ROW_TOLERANCE:
        return f"a row differs by {difference:.3g} from its reference"
    if (error := errors.get(OUTPUT, 1.0)) > OUTPUT_TOLERANCE[dtype]:
        return f"the attention output differs by {error:.3g} from the one rebuilt from captured values"
    return None


def batches(max_model_len: int, window: int, vocabulary: int) -> Iterator[list[list[int]]]:
    """Groups of prompts to run together."""
    rng = random.Random(20)
    low, high = vocabulary // 8, vocabulary // 2
    longest = max_model_len - TOKENS - 1

    def prompt(length: int) -> list[int]:
        return [rng.randrange(low, high) for _ in range(min(length, longest))]

    together = [prompt(7), prompt(33), prompt(61)]
    yield together
    yield [[*ids, low] for ids in together]
    yield [prompt(21)]
    if window and window < longest:
        yield [prompt(window + 37), prompt(13)]


def run(engine: CaptureEngine, vocabulary: int) -> str | None:
    """Test an engine. Returns why it failed, or None when it passed."""
    window = max((group[1] for group in engine.info["groups"]), default=0)
    for prompts in batches(engine.settings.max_model_len, window, vocabulary):
        if reason := _run_batch(engine, prompts):
            return reason
    return None


def _run_batch(engine: CaptureEngine, prompts: Sequence[Sequence[int]]) -> str | None:
    jobs = []
    for ids in prompts:
        request = RowRequest(1, len(ids) // 2, len(ids), len(ids) - 1, check=True)
        jobs.append(engine.submit(ids, TOKENS, rows=request, ignore_end=True))
    for ids, job in zip(prompts, jobs, strict=True):
        result = engine.wait(job)
        if result.rows is None or len(result.rows.values) < len(result.token_ids):
            return f"rows of a prompt of {len(ids)} tokens were not delivered"
        if reason := verdict(result.rows, engine.info["dtype"]):
            return f"{reason} (prompt of {len(ids)} tokens)"
    return None
