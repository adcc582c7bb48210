"""Other architectures at toy size, seeded random weights; one in two tensor-parallel ranks behind an engine process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.benchmarks.mt_subject import subject
from engine.benchmarks.random_weights import build
from engine.capture.request import RowRequest
from engine.capture.start import start
from tests.vllm_engine.rows import reference_rows


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        # Heads on layers that share another's keys (7 to 11), one head of each rank.
        ("gemma-4-tiny", {"heads": ((5, 3), (9, 2), (3, 0), (11, 1)), "tensor_parallel": 2, "own_process": True}),
        ("qwen3-tiny", {}),
        ("llama-tiny", {}),
    ],
)
def test_rows_agree_with_transformers(architecture: str, changes: dict[str, Any], tmp_path: Path) -> None:
    import torch

    chosen = subject(architecture, tmp_path, "cpu", "float32", changes.pop("heads", ()))
    model = build(chosen.config(), "eager", "cpu", torch.float32)
    engine = start(chosen.settings(enforce_eager=True, max_model_len=256, kv_cache_gib=0.05, **changes))
    try:
        assert engine.mode.label == "eager/passed"
        ids = np.random.default_rng(1).integers(500, 2000, 70).tolist()
        request = RowRequest(4, 40, 66, 69)
        made = engine.generate(ids, 5, rows=request, ignore_end=True)
        assert made.rows is not None
        expected = reference_rows(model, [*ids, *made.token_ids], chosen.heads, request, 5)
        np.testing.assert_allclose(made.rows.values, expected, atol=1e-5)
    finally:
        engine.close()
