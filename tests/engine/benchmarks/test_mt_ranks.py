"""Rows of one rank beside those of several."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from engine.benchmarks.mt_ranks import compare


def _saved(path: Path, **rows: list[list[list[float]]]) -> Path:
    np.savez(path, **{name: np.asarray(value, np.float32) for name, value in rows.items()})
    return path


def test_alike(tmp_path: Path) -> None:
    one = _saved(tmp_path / "1.npz", a=[[[0.5, 0.2, 0.2, 0.1]]])
    two = _saved(tmp_path / "2.npz", a=[[[0.5, 0.25, 0.15, 0.1]]])
    found = compare(one, two)
    assert (found["rows"], found["missing_or_nonfinite"], found["same_source_position"]) == (1, 0, 1.0)
    assert abs(found["difference_max"] - 0.05) < 1e-6


def test_missing_nonfinite_and_elsewhere(tmp_path: Path) -> None:
    row = [[0.5, 0.2, 0.2, 0.1]]
    one = _saved(tmp_path / "1.npz", a=[row, row, row])
    two = _saved(tmp_path / "2.npz", a=[[[0.1, 0.6, 0.2, 0.1]], [[float("nan"), 0.2, 0.2, 0.1]]])
    found = compare(one, two)
    assert found["missing_or_nonfinite"] == 2
    assert found["same_source_position"] < 1
    assert np.isfinite(found["difference_max"])
