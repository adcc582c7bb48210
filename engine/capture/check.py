"""The engine's own attention output, rebuilt from what was captured: softmax(scale · QKᵀ)V against the output by slot.

If queries, keys or slots were wrong in any mode, the two would differ; if they agree, the rows are those of the
attention that the engine really computed. Runs in the worker, in float32, for reads of requests that ask for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from engine.capture.reader import probabilities, reference_rows
from engine.capture.request import NONFINITE, OUTPUT, ROWS
from engine.capture.slots import Read
from engine.capture.tap import LayerTap


def output_error(taps: Sequence[LayerTap], read: Read) -> float:
    """Largest relative error ‖rebuilt − output‖ / ‖output‖ over queries and heads; infinite where one is not finite."""
    worst = 0.0
    for tap in taps:
        for index, kv_head in enumerate(tap.kv_heads):
            low, p, slots = probabilities(tap, read, index)
            rebuilt = p @ tap.values(slots, kv_head).float()
            output = tap.outputs[slots[read.first - low :], index].float()
            error = (torch.linalg.vector_norm(rebuilt - output, dim=-1)
                     / torch.linalg.vector_norm(output, dim=-1))  # fmt: skip
            largest = float(error.max())
            worst = max(worst, largest if np.isfinite(largest) else float("inf"))
    return worst


def check_read(taps: Sequence[LayerTap], read: Read, rows: NDArray[np.float32]) -> dict[str, float]:
    """What a check found: output error, largest difference to plain torch rows, and the count of non-finite rows."""
    expected = reference_rows(taps, read)
    difference = float(np.abs(rows - expected).max()) if rows.size else 0.0
    return {
        OUTPUT: output_error(taps, read),
        ROWS: difference if np.isfinite(difference) else float("inf"),
        NONFINITE: float((~np.isfinite(rows).all(axis=-1)).sum()),
    }
