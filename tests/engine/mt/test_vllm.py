"""The vLLM translator over a scripted engine: columns to units, own rows, ends of answers, withheld rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine.capture.guard import CaptureError, MemoryShort
from engine.capture.host import Generation
from engine.capture.modes import EAGER, ModeRecord
from engine.capture.request import RowRequest, Rows
from engine.capture.settings import EngineSettings
from engine.mt import vllm
from engine.mt.contract import CaptureHealth, Source, TranslationError
from engine.mt.hf_tokens import Tokens
from engine.mt.prompt import FewShotLayout, Prompt
from engine.mt.vllm import VllmTranslator

SOURCE = Source(("Guten", "Morgen,", "alle."), "de", "en")
END = 3


class Letters:
    """A vocabulary of single bytes; token 3 ends a text, 300 is a line break behind a full stop."""

    def tokenise(self, prompt: Prompt) -> Tokens:
        raw = prompt.text.encode()
        return Tokens([2, *raw], [(0, 0), *((at, at + 1) for at in range(len(raw)))])

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def piece(self, token: int, control: bool = False) -> bytes:
        return b".\n" if token == 300 else bytes([token])

    def ends_text(self, token: int) -> bool:
        return token == END


class ScriptedEngine:
    """Gives the same tokens to every request; each row puts half its mass on the first source column."""

    def __init__(self, tokens: Sequence[int], finish: str = "length", rows: bool = True) -> None:
        self.tokens, self.finish, self.rows = tuple(tokens), finish, rows
        self.mode = ModeRecord(EAGER).passed()
        self.failure = ""
        self.on_failure: Callable[[str], None] = lambda sentence: None
        self.asked: list[tuple[list[int], int, RowRequest | None]] = []

    def generate(self, ids: list[int], limit: int, stop: Sequence[int], request: RowRequest | None, cancel: Any) -> Any:
        self.asked.append((ids, limit, request))
        if cancel():
            return Generation((), "cancelled", None)
        made = self.tokens[:limit]
        values = np.zeros((max(len(made), 1), 2, (request.source_tokens if request else 0) + 2), np.float32)
        values[..., 0], values[..., -2], values[..., -1] = 0.5, 0.3, 0.2
        finish = "length" if len(made) == limit else self.finish
        return Generation(made, finish, Rows(values) if self.rows else None)


def translator(engine: ScriptedEngine, own: bool = False) -> Any:
    made = VllmTranslator.__new__(VllmTranslator)
    made._engine, made._tokens, made._layout = engine, Letters(), FewShotLayout()
    made._own_row, made._n_ctx, made._stop_ids, made.heads = own, 2000, (END,), ((0, 0), (1, 1))
    made.health = CaptureHealth()
    engine.on_failure = made._failed
    made._health_lock, made._text_lock = threading.Lock(), threading.Lock()
    return made


def never() -> bool:
    return False


def test_source_columns_become_units_and_the_rest_prompt_and_suffix() -> None:
    engine = ScriptedEngine(b" Good")
    made = translator(engine)
    draft = made.draft("a", SOURCE, (65, 66), 5, never)
    ids, limit, request = engine.asked[0]
    assert draft.text == " Good"
    assert draft.prefill_ids == (65, 66)
    assert limit == 5
    assert request is not None
    assert (
        bytes(ids[request.source_start : request.source_start + request.source_tokens]).strip()
        == b"Guten Morgen, alle."
    )
    assert request.prompt_tokens == len(ids) - 2
    assert request.first_query == len(ids) - 1
    np.testing.assert_allclose(draft.rows, [[0.5, 0, 0]] * 5)
    np.testing.assert_allclose(draft.prompt, 0.3)
    np.testing.assert_allclose(draft.suffix, 0.2)
    assert (made.health.mode, made.health.self_test) == (EAGER, "passed")
    assert made.health.rows_expected == 5


def test_own_rows_ask_for_one_token_more_and_drop_it() -> None:
    engine = ScriptedEngine(b" Good morning")
    draft = translator(engine, own=True).draft("a", SOURCE, (), 5, never)
    ids, limit, request = engine.asked[0]
    assert limit == 6
    assert request is not None
    assert request.first_query == len(ids)
    assert draft.text == " Good"
    assert draft.finish == "length"
    assert not draft.missing.any()


@pytest.mark.parametrize("own", [False, True])
def test_a_token_that_runs_past_the_line_is_cut_and_keeps_a_row(own: bool) -> None:
    engine = ScriptedEngine([*b" Hi", 300, *b"more"])
    draft = translator(engine, own).draft("a", SOURCE, (), 8, never)
    assert draft.text == " Hi."
    assert draft.finish == "stop"
    assert not draft.missing.any()
    assert len(engine.asked) == 1 + own
    if own:
        assert engine.asked[1][0][-4:] == list(b" Hi.")


def test_a_draft_that_was_made_loses_no_row_when_it_is_cancelled_afterwards() -> None:
    made = translator(ScriptedEngine([*b" Hi", 300]), own=True)
    answers = iter([False, False])
    draft = made.draft("a", SOURCE, (), 8, lambda: next(answers, True))
    assert draft.text == " Hi."
    assert made.health.rows_missing == 0


def test_an_end_token_ends_the_draft() -> None:
    draft = translator(ScriptedEngine([*b" Hi", END, 65])).draft("a", SOURCE, (), 8, never)
    assert draft.text == " Hi"
    assert draft.finish == "stop"


def test_rows_that_are_withheld_are_missing_and_counted() -> None:
    engine = ScriptedEngine(b" Hi", rows=False)
    engine.mode = ModeRecord("none").failed("why")
    made = translator(engine)
    draft = made.draft("a", SOURCE, (), 3, never)
    assert draft.text == " Hi"
    assert draft.missing.all()
    assert np.isnan(draft.rows).all()
    assert made.health.mode == "none"
    assert made.health.self_test == "failed"
    assert made.health.reason == "why"
    assert made.health.rows_missing == 3


def test_cancelled_before_and_during() -> None:
    engine = ScriptedEngine(b" Hi")
    assert translator(engine).draft("a", SOURCE, (), 3, lambda: True).finish == "cancelled"
    assert engine.asked == []
    answers = iter([False, True])
    assert translator(engine).draft("a", SOURCE, (), 3, lambda: next(answers)).finish == "cancelled"


def test_a_failed_engine_is_a_translation_error(monkeypatch: pytest.MonkeyPatch) -> None:
    made = translator(ScriptedEngine(b" Hi"))

    def broken(*_: Any) -> Any:
        raise CaptureError("The vLLM engine failed; restart the engine.")

    monkeypatch.setattr(made._engine, "generate", broken)
    with pytest.raises(TranslationError, match="restart the engine"):
        made.draft("a", SOURCE, (), 3, never)
    assert made.health.ok
    made._engine.on_failure("The vLLM engine failed; restart the engine.")
    assert not made.health.ok
    assert made.health.failure == "The vLLM engine failed; restart the engine."


def test_too_little_memory_names_a_preset_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    def short(*_: Any) -> Any:
        raise MemoryShort("The translator needs 20.0 GiB of GPU memory, but only 3.0 GiB are free.", 3.0)

    monkeypatch.setattr(vllm, "start", short)
    with pytest.raises(TranslationError, match=r"only 3\.0 GiB are free: no preset for a GPU fits, laptop runs"):
        vllm._start(EngineSettings("m"), None)
