"""Other architectures at toy size, seeded random weights; some in two ranks behind an engine process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.benchmarks.mt_subject import subject
from engine.benchmarks.random_weights import build
from engine.capture import compat
from engine.capture.guard import CaptureError
from engine.capture.request import RowRequest
from engine.capture.start import start
from tests.vllm_engine.rows import reference_rows

RANKS = {"tensor_parallel": 2, "own_process": True}


@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        # Heads on layers that share another's keys (7 to 11), one head of each rank.
        ("gemma-4-tiny", {"heads": ((5, 3), (9, 2), (3, 0), (11, 1)), **RANKS}),
        # Inside the multimodal class of the published checkpoints.
        ("gemma-4-tiny-wrapped", {}),
        # A single key-value head, which both ranks hold; all heads that are watched are of the second rank.
        ("gemma-3-tiny", {"heads": ((1, 3), (5, 2)), **RANKS}),
        ("qwen3-tiny", {}),
        ("llama-tiny", {}),
    ],
)
def test_rows_agree_with_transformers(architecture: str, changes: dict[str, Any], tmp_path: Path) -> None:
    import torch

    chosen = subject(architecture, tmp_path, "cpu", "float32", changes.get("heads", ()))
    model = build(chosen.config(), "eager", "cpu", torch.float32)
    ranks = {name: value for name, value in changes.items() if name != "heads"}
    engine = start(chosen.settings(enforce_eager=True, max_model_len=256, kv_cache_gib=0.05, **ranks))
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


def test_requests_that_are_preempted_and_resumed_keep_their_rows(tmp_path: Path) -> None:
    """Eight requests fit until each needs more blocks at 256 tokens; a short and a long one, in chunks, wait."""
    import torch

    chosen = subject("gemma-4-tiny", tmp_path, "cpu", "float32")
    model = build(chosen.config(), "eager", "cpu", torch.float32)
    engine = start(
        chosen.settings(
            enforce_eager=True, kv_cache_gib=0.012, vllm={**chosen.settings().vllm, "max_num_batched_tokens": 256}
        )
    )
    try:
        rng = np.random.default_rng(2)
        prompts = [rng.integers(500, 2000, length).tolist() for length in (*[250] * 8, 1500, 30)]
        requests = [RowRequest(4, 20, len(ids) - 1, len(ids) - 1) for ids in prompts]
        jobs = [
            engine.submit(ids, 40, rows=request, ignore_end=True)
            for ids, request in zip(prompts, requests, strict=True)
        ]
        for ids, request, job in zip(prompts, requests, jobs, strict=True):
            made = engine.wait(job)
            assert made.rows is not None
            expected = reference_rows(model, [*ids, *made.token_ids], chosen.heads, request, 40)
            np.testing.assert_allclose(made.rows.values, expected, atol=1e-5)
        assert engine.ask_info()["counts"]["resumed"] > 0
    finally:
        engine.close()


def test_what_is_refused_is_one_sentence_also_with_an_engine_process(tmp_path: Path) -> None:
    chosen = subject("gemma-4-tiny", tmp_path, "cpu", "float32")
    for changes, sentence in (
        ({"vllm": {"kv_cache_dtype": "fp8"}}, r"quantised KV cache \(fp8\)"),
        ({"heads": ((5, 4),)}, "heads 0 to 3"),
    ):
        settings = chosen.settings(enforce_eager=True, own_process=True, **changes)
        with pytest.raises(CaptureError, match=sentence):
            start(settings)


def test_the_function_that_groups_layers_is_where_it_is_looked_for() -> None:
    assert compat.kv_cache_groups().__name__ == "get_kv_cache_groups"
