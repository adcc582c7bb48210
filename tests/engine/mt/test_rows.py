from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from engine.mt.rows import reduce_rows, stack_rows, unit_masses

UNITS = np.array([-1, 0, 0, 1, -1], np.int32)  # a prompt of five tokens: two of unit 0, one of unit 1


def test_units_are_summed_and_heads_averaged() -> None:
    attention = np.array(
        [
            [[0.10, 0.20, 0.30, 0.10, 0.30, 0.00, 0.00], [0.10, 0.20, 0.30, 0.10, 0.10, 0.20, 0.00]],
            [[0.30, 0.10, 0.10, 0.30, 0.20, 0.00, 0.00], [0.10, 0.00, 0.10, 0.10, 0.10, 0.40, 0.20]],
        ],
        np.float32,
    )
    reduced = reduce_rows(attention, UNITS, 5, 2)
    np.testing.assert_allclose(reduced.rows, [[0.35, 0.20], [0.30, 0.10]], atol=1e-6)
    np.testing.assert_allclose(reduced.prompt, [0.45, 0.20], atol=1e-6)
    np.testing.assert_allclose(reduced.suffix, [0.0, 0.4], atol=1e-6)


def test_rows_of_different_lengths_are_stacked() -> None:
    rows = [np.full((2, 2), 0.5, np.float32), None, np.full((2, 4), 0.25, np.float32)]
    stacked = stack_rows(rows, heads=2)
    assert stacked.shape == (2, 3, 4)
    np.testing.assert_array_equal(stacked[0, 0], [0.5, 0.5, 0, 0])
    assert np.isnan(stacked[:, 1]).all()
    reduced = reduce_rows(stacked, np.array([0, -1], np.int32), 2, 1)
    np.testing.assert_array_equal(reduced.rows[:, 0], [0.5, np.nan, 0.25])
    np.testing.assert_array_equal(reduced.suffix, [0, np.nan, 0.5])


@pytest.mark.parametrize("rows", [[], [None, None]])
def test_nothing_to_stack(rows: list[None]) -> None:
    stacked = stack_rows(rows, heads=3)
    reduced = reduce_rows(stacked, UNITS, 5, 2)
    assert reduced.rows.shape == (len(rows), 2)
    assert np.isnan(reduced.rows).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.5])
def test_a_row_that_is_no_distribution_is_nan_throughout(value: float) -> None:
    attention = np.full((2, 2, 5), 0.2, np.float32)
    attention[1, 0, 4] = value
    reduced = reduce_rows(attention, UNITS, 5, 2)
    for part in (reduced.rows[0], reduced.prompt[0], reduced.suffix[0]):
        assert np.isnan(part).all()
    for part in (reduced.rows[1], reduced.prompt[1], reduced.suffix[1]):
        assert np.isfinite(part).all()


def test_a_prompt_longer_than_the_rows() -> None:
    """The row that predicts the first token sees the prompt alone; one inside the prompt sees less."""
    masses = unit_masses(np.full((1, 1, 4), 0.25, np.float32), UNITS, 5, 2)
    np.testing.assert_allclose(masses[0, 0], [0.5, 0.25, 0.25, 0])


@given(
    raw=arrays.arrays(
        np.float32,
        st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(6, 20)),
        elements=st.floats(0, 1, width=32),
    ),
    units=arrays.arrays(np.int32, 6, elements=st.integers(-1, 3)),
)
def test_the_masses_of_a_token_sum_to_one(raw: NDArray[np.float32], units: NDArray[np.int32]) -> None:
    attention = (raw + 1e-3) / (raw + 1e-3).sum(axis=-1, keepdims=True)
    reduced = reduce_rows(attention, units, 6, 4)
    np.testing.assert_allclose(reduced.rows.sum(axis=1) + reduced.prompt + reduced.suffix, 1, atol=1e-4)
    assert (reduced.rows >= 0).all()
    np.testing.assert_allclose(reduced.suffix, attention[..., 6:].sum(-1).mean(0), atol=1e-4)
