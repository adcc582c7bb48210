"""Rows of the running engine against transformers in float32, and what happens to requests."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.capture.guard import CaptureError
from engine.capture.host import CaptureEngine
from engine.capture.request import RowRequest
from engine.capture.settings import EngineSettings
from engine.capture.start import start
from tests.vllm_engine.conftest import CONTEXT, HEADS
from tests.vllm_engine.rows import reference_rows

TOLERANCE = 1e-5
BEGIN = 2


@pytest.fixture
def engine(translator: Any) -> CaptureEngine:
    return translator._engine


def prompt(length: int, seed: int = 0) -> list[int]:
    return [BEGIN, *np.random.default_rng(seed).integers(1000, 100_000, length - 1).tolist()]


def compare(engine: CaptureEngine, reference: Any, ids: list[int], request: RowRequest, count: int) -> Any:
    made = engine.generate(ids, count, rows=request, ignore_end=True)
    assert made.rows is not None
    assert len(made.token_ids) == count
    rows = made.rows.values
    assert len(rows) == len(ids) + count - 1 - request.first_query
    expected = reference_rows(reference, [*ids, *made.token_ids], HEADS, request, len(rows))
    np.testing.assert_allclose(rows, expected, atol=TOLERANCE)
    np.testing.assert_allclose(rows.sum(-1), 1, atol=TOLERANCE)
    return made


def test_the_mode_is_eager_and_verified(engine: CaptureEngine) -> None:
    assert engine.mode.label == "eager/passed"


def test_rows_of_a_short_prompt(engine: CaptureEngine, reference: Any) -> None:
    compare(engine, reference, prompt(31), RowRequest(3, 10, 28, 30), 6)


def test_rows_of_a_long_prompt_in_chunks_beyond_the_window(engine: CaptureEngine, reference: Any) -> None:
    compare(engine, reference, prompt(700), RowRequest(300, 200, 690, 699), 5)


def test_rows_at_the_own_position_lack_the_last_token(engine: CaptureEngine, reference: Any) -> None:
    compare(engine, reference, prompt(40, 1), RowRequest(2, 20, 40, 40), 4)


def test_a_prefix_from_the_cache(engine: CaptureEngine, reference: Any) -> None:
    ids = prompt(300, 2)
    first = compare(engine, reference, ids, RowRequest(10, 50, 300, 299), 3)
    again = compare(engine, reference, ids, RowRequest(10, 50, 300, 299), 3)
    grown = compare(engine, reference, [*ids, 5000, 6000], RowRequest(10, 50, 302, 301), 3)
    assert first.cached_tokens == 0
    assert again.cached_tokens > 0
    assert grown.cached_tokens > 0


def test_one_token_and_an_end_at_once(engine: CaptureEngine, reference: Any) -> None:
    ids = prompt(20, 3)
    one = compare(engine, reference, ids, RowRequest(1, 9, 20, 19), 1)
    ended = engine.generate(ids, 8, stop_ids=one.token_ids, rows=RowRequest(1, 9, 20, 19))
    assert ended.token_ids == ()
    assert ended.finish == "stop"


def test_sessions_at_once_and_one_of_them_cancelled(engine: CaptureEngine, reference: Any) -> None:
    results: dict[int, Any] = {}

    def session(number: int) -> None:
        ids = prompt(50 + 37 * number, 10 + number)
        results[number] = compare(engine, reference, ids, RowRequest(5, 20, len(ids), len(ids) - 1), 6)

    threads = [threading.Thread(target=session, args=(number,)) for number in range(3)]
    long_job = engine.submit(prompt(200, 9), 400, rows=RowRequest(5, 20, 200, 199), ignore_end=True)
    for thread in threads:
        thread.start()
    cancelled = engine.wait(long_job, cancel=lambda: True)
    for thread in threads:
        thread.join()
    assert cancelled.finish == "cancelled"
    assert cancelled.rows is None
    assert sorted(results) == [0, 1, 2]


def test_checked_requests_rebuild_the_attention_output(engine: CaptureEngine) -> None:
    made = engine.generate(prompt(90, 4), 6, rows=RowRequest(5, 20, 90, 89, check=True), ignore_end=True)
    assert made.rows is not None
    errors = dict(made.rows.errors)
    assert errors["output"] < 1e-4
    assert errors["nonfinite"] == 0


def test_a_prompt_that_does_not_fit_is_one_sentence(engine: CaptureEngine) -> None:
    with pytest.raises(CaptureError, match=f"does not fit a context of {CONTEXT}"):
        engine.submit(prompt(CONTEXT), 4)


def test_compiled_once(model_folder: Path, reference: Any) -> None:
    """Compiled code is where capture that was installed too late, or is seen by the compiler, captures nothing."""
    engine = start(
        EngineSettings(str(model_folder), HEADS, max_model_len=256, max_num_seqs=4, dtype="float32", kv_cache_gib=0.25)
    )
    try:
        assert engine.mode.label == "compiled/passed"
        compare(engine, reference, prompt(33, 5), RowRequest(3, 10, 30, 32), 5)
    finally:
        engine.close()


def test_heads_out_of_range_are_refused(model_folder: Path) -> None:
    settings = EngineSettings(
        str(model_folder), ((13, 4),), max_model_len=128, dtype="float32", enforce_eager=True, kv_cache_gib=0.05
    )
    with pytest.raises(CaptureError, match="heads 0 to 3"):
        start(settings)
