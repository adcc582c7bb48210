"""Drafts of the vLLM translator: provenance by unit, budgets, cancellation, and health."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from engine.mt.contract import Source
from engine.mt.drafting import prepare
from engine.mt.rows import reduce_rows
from tests.vllm_engine.conftest import HEADS

SOURCE = Source(("Good", "morning,", "we", "will", "start", "in", "five", "minutes."), "en", "de")


def never() -> bool:
    return False


def test_rows_of_a_draft_are_those_of_transformers(translator: Any, reference: Any) -> None:
    import torch

    draft = translator.draft("a", SOURCE, (), 12, never)
    assert draft.text.strip()
    assert not draft.missing.any()
    prepared = prepare(translator._layout, SOURCE, translator._tokens.tokenise, 900, 900)
    with torch.inference_mode():
        attentions = reference(torch.tensor([[*prepared.ids, *draft.token_ids]]), output_attentions=True).attentions
    first = len(prepared.ids) - 1
    whole = np.stack(
        [attentions[layer][0, head, first : first + len(draft.token_ids)].numpy() for layer, head in HEADS]
    )
    expected = reduce_rows(whole, prepared.units, len(prepared.ids), len(SOURCE.units))
    np.testing.assert_allclose(draft.rows, expected.rows, atol=1e-5)
    np.testing.assert_allclose(draft.prompt, expected.prompt, atol=1e-5)
    np.testing.assert_allclose(draft.suffix, expected.suffix, atol=1e-5)
    assert translator.health.mode == "eager"
    assert translator.health.self_test == "passed"
    assert translator.health.rows_missing + translator.health.rows_nonfinite == 0


def test_a_released_prefix_is_continued(translator: Any) -> None:
    draft = translator.draft("a", SOURCE, (), 12, never)
    kept = draft.token_ids[:3]
    again = translator.draft("a", SOURCE, kept, 12, never)
    assert again.prefill_ids == tuple(kept)
    assert again.token_ids[: len(draft.token_ids) - 3] == draft.token_ids[3:]
    assert np.isfinite(again.rows).all()


def test_sessions_draft_at_the_same_time(translator: Any) -> None:
    alone = {n: translator.draft(str(n), Source(SOURCE.units[: n + 3], "en", "de"), (), 8, never) for n in range(3)}
    together: dict[int, Any] = {}

    def session(number: int) -> None:
        source = Source(SOURCE.units[: number + 3], "en", "de")
        together[number] = translator.draft(str(number), source, (), 8, never)

    threads = [threading.Thread(target=session, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, draft in alone.items():
        assert together[number].token_ids == draft.token_ids
        np.testing.assert_allclose(together[number].rows, draft.rows, atol=1e-4)


def test_a_cancelled_draft_is_empty(translator: Any) -> None:
    assert translator.draft("a", SOURCE, (), 12, lambda: True).finish == "cancelled"
    asked = iter(range(100))
    draft = translator.draft("a", SOURCE, (), 200, lambda: next(asked) > 2)
    assert draft.finish == "cancelled"
    assert draft.token_ids == ()


def test_an_empty_source_and_target_text(translator: Any) -> None:
    draft = translator.draft("a", Source((), "en", "de"), (), 4, never)
    assert draft.rows.shape == (len(draft.token_ids), 0)
    assert translator.encode_target(" ") == []
    assert translator.count_tokens(" Guten Morgen") == len(translator.encode_target("Guten Morgen"))


def test_teacher_forcing_gives_the_rows_of_a_draft(translator: Any) -> None:
    draft = translator.draft("a", SOURCE, (), 8, never)
    masses = translator.teacher_force(SOURCE, draft.token_ids)
    assert masses.shape == (len(HEADS), len(draft.token_ids), len(SOURCE.units))
    np.testing.assert_allclose(masses.mean(axis=0), draft.rows, atol=1e-4)
