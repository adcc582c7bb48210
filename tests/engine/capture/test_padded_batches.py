"""The published failure of capture under CUDA graphs, as a regression test (engine/LIMITATIONS.md, "Positions").

A graphed batch is padded to a captured size. Padding rows carry garbage, often NaN, their positions are stale or zero,
and their slot is -1. Capture that goes by position takes them for the prompt's first tokens; the tap goes by slot.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.capture.copy import copy_by_slot
from engine.capture.slots import slots_of

DIM, PROMPT, DRAFT, BLOCK = 8, 13, 5, 4
Array = NDArray[np.float32]


@dataclass
class Batch:
    """One step as a graph runs it: `real` rows of one request, then padding up to a captured size."""

    values: Array
    positions: NDArray[np.int64]
    slots: NDArray[np.int64]


@dataclass
class Graphed:
    """A request's queries and keys, token by token, in batches padded to powers of two."""

    blocks: list[int] = field(default_factory=lambda: [7, 2, 9, 4, 1])
    truth: Array = field(
        default_factory=lambda: np.random.default_rng(3).normal(size=(PROMPT + DRAFT, DIM)).astype(np.float32)
    )
    padding_value: float = float("nan")
    stale_positions: bool = False

    def batches(self) -> list[Batch]:
        steps = [(0, PROMPT), *((PROMPT + i, PROMPT + i + 1) for i in range(DRAFT))]
        return [self._batch(first, last) for first, last in steps]

    def _batch(self, first: int, last: int) -> Batch:
        size = max(4, 1 << (last - first - 1).bit_length())
        values = np.full((size, DIM), self.padding_value, np.float32)
        values[: last - first] = self.truth[first:last]
        # One runner zeroes the positions of padding rows, the other leaves those of the last larger batch.
        positions = np.arange(size, dtype=np.int64) if self.stale_positions else np.zeros(size, np.int64)
        positions[: last - first] = np.arange(first, last)
        slots = np.full(size, -1, np.int64)
        slots[: last - first] = slots_of(self.blocks, BLOCK, first, last)
        return Batch(values, positions, slots)


def by_position_product(batches: list[Batch]) -> Array:
    """The published form: values times a mask, scattered and added at their positions."""
    buffer = np.zeros((PROMPT + DRAFT, DIM), np.float32)
    for batch in batches:
        for low, high in ((0, PROMPT), (PROMPT, PROMPT + DRAFT)):
            mask = (batch.positions >= low) & (batch.positions < high)
            added = np.zeros_like(buffer)
            np.add.at(added, np.clip(batch.positions, 0, len(buffer) - 1), batch.values * mask[:, None])
            written = np.zeros(len(buffer), bool)
            written[batch.positions[mask]] = True
            buffer = np.where(written[:, None], added, buffer)
    return buffer


def by_position_where(batches: list[Batch]) -> Array:
    """The same with a selection instead of the product, so that NaN times 0 cannot happen."""
    selected = []
    for batch in batches:
        mask = (batch.positions >= 0) & (batch.positions < PROMPT + DRAFT)
        selected.append(Batch(np.where(mask[:, None], batch.values, 0), batch.positions, batch.slots))
    return by_position_product(selected)


def by_slot(batches: list[Batch]) -> Array:
    """The tap's write."""
    shadow = np.zeros((10 * BLOCK, DIM), np.float32)
    for batch in batches:
        copy_by_slot(batch.values, batch.slots, shadow)
    return shadow[slots_of(Graphed().blocks, BLOCK, 0, PROMPT + DRAFT)]


@pytest.mark.parametrize("capture", [by_position_product, by_position_where])
def test_capture_by_position_takes_padding_rows_for_prompt_tokens(capture):
    captured = capture(Graphed().batches())
    assert not np.isfinite(captured[0]).all(), "the first key, where attention sinks, is lost"


@pytest.mark.parametrize("stale_positions", [False, True])
def test_without_nan_capture_by_position_is_wrong_in_silence(stale_positions):
    request = Graphed(padding_value=3.0, stale_positions=stale_positions)
    captured = by_position_where(request.batches())
    assert np.isfinite(captured).all()
    assert not np.allclose(captured, request.truth)


@pytest.mark.parametrize("padding_value", [float("nan"), float("inf"), 3.0, 0.0])
@pytest.mark.parametrize("stale_positions", [False, True])
def test_the_tap_captures_every_token_and_no_padding(padding_value, stale_positions):
    request = Graphed(padding_value=padding_value, stale_positions=stale_positions)
    np.testing.assert_array_equal(by_slot(request.batches()), request.truth)


def test_dropping_rows_without_a_slot_heals_capture_by_position():
    """What is wrong is the padding rows and nothing else: neither the product, nor the order, nor the buffers."""
    real = [
        Batch(b.values[b.slots >= 0], b.positions[b.slots >= 0], b.slots[b.slots >= 0]) for b in Graphed().batches()
    ]
    np.testing.assert_array_equal(by_position_product(real), Graphed().truth)


def test_more_values_than_slots_and_more_slots_than_values():
    shadow = np.zeros((4, 1), np.float32)
    copy_by_slot(np.ones((3, 1), np.float32), np.array([2]), shadow)
    copy_by_slot(np.full((1, 1), 5, np.float32), np.array([0, 3]), shadow)
    assert shadow[:, 0].tolist() == [5, 0, 1, 0]
