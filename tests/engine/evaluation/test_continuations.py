"""Continuations that are known are not generated again, and give the same drafts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.alignatt.draft import Draft
from engine.evaluation.continuations import RememberingTranslator, StoreError
from engine.mt.contract import Cancel, Source
from tests.engine.mt.scripted import ScriptedTranslator

SOURCE = Source(("we", "go", "home", "now"), "en", "de")


def never() -> bool:
    return False


class Greedy(ScriptedTranslator):
    """Token ids are positions in the target, so that the same prefix has the same continuation whoever asks. A draft
    that uses up its budget does not know yet whether the text ends there, as with a real model."""

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        made = super().draft(session_id, source, prefill_ids, max_new_tokens, cancel)
        first = len(prefill_ids)
        return Draft(
            made.prefill_ids,
            tuple(range(first, first + len(made.token_ids))),
            made.pieces,
            made.rows,
            made.prompt,
            made.suffix,
            made.missing,
            "length" if len(made.token_ids) == max_new_tokens else made.finish,
        )


def ask(translator: RememberingTranslator | Greedy, prefill: Sequence[int], tokens: int) -> Draft:
    return translator.draft("s", SOURCE, prefill, tokens, never)


def same(first: Draft, second: Draft) -> bool:
    return (
        (first.prefill_ids, first.token_ids, first.pieces, first.finish)
        == (second.prefill_ids, second.token_ids, second.pieces, second.finish)
        and np.array_equal(first.rows, second.rows)
        and np.array_equal(first.missing, second.missing)
    )


@pytest.mark.parametrize("path", [None, "drafts.jsonl"])
def test_drafts_are_those_of_the_model(tmp_path: Path, path: str | None) -> None:
    remembering = RememberingTranslator(Greedy(), tmp_path / path if path else None)
    for prefill, tokens in (((), 2), ((0,), 1), ((), 4), ((0, 1), 2), ((0, 1), 8), ((), 3), ((0, 1, 2, 3), 5)):
        assert same(ask(remembering, prefill, tokens), ask(Greedy(), prefill, tokens)), (prefill, tokens)


def test_what_is_known_needs_no_model() -> None:
    model = Greedy()
    remembering = RememberingTranslator(model)
    ask(remembering, (), 8)
    ask(remembering, (0,), 8)
    ask(remembering, (0, 1, 2), 2)
    assert model.calls == 1
    ask(remembering, (7,), 8)
    assert model.calls == 2
    remembering.draft("s", Source(("we", "go"), "en", "de"), (), 8, never)
    assert model.calls == 3
    assert remembering.savings.generated < remembering.savings.tokens


def test_drafts_survive_on_disk(tmp_path: Path) -> None:
    ask(RememberingTranslator(Greedy(), tmp_path / "store", "model"), (), 2)
    model = Greedy()
    again = RememberingTranslator(model, tmp_path / "store", "model")
    assert same(ask(again, (), 2), ask(Greedy(), (), 2))
    assert model.calls == 0


def test_half_a_line_of_a_killed_writer_is_dropped(tmp_path: Path) -> None:
    store = tmp_path / "store"
    ask(RememberingTranslator(Greedy(), store), (), 2)
    with store.open("a", encoding="utf-8") as file:
        file.write('{"source": "')
    ask(RememberingTranslator(Greedy(), store), (), 4)
    model = Greedy()
    ask(RememberingTranslator(model, store), (), 4)
    assert model.calls == 0


def test_a_store_of_another_model_is_refused(tmp_path: Path) -> None:
    RememberingTranslator(Greedy(), tmp_path / "store", "one model")
    with pytest.raises(StoreError, match="another model"):
        RememberingTranslator(Greedy(), tmp_path / "store", "another")
    (tmp_path / "broken").write_text("words\n", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be read"):
        RememberingTranslator(Greedy(), tmp_path / "broken", "one model")


def test_a_cancelled_draft_is_not_remembered() -> None:
    remembering = RememberingTranslator(Greedy())
    assert remembering.draft("s", SOURCE, (), 4, lambda: True).finish == "cancelled"
    assert ask(remembering, (), 4).pieces[0] == b" WE"
