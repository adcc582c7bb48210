"""Both seams of the Hugging Face translator on tiny checkpoints of every supported architecture."""

# ruff: noqa: E402 - what needs torch comes behind the skip
from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from engine.alignatt.draft import Draft
from engine.mt.attention_spec import LayerAttention
from engine.mt.contract import Source, TranslationError
from engine.mt.huggingface import HuggingFaceTranslator
from tests.engine.mt.tiny_models import ARCHITECTURES, HEADS, WINDOW, save

ALL = sorted(ARCHITECTURES)
SEAMS = ("hf_eager", "hf_qk_fast")
CHOSEN = ((2, 3), (0, 1), (2, 0), (1, 2))
TARGET = "Ja, natürlich, die neue Brücke war gesperrt"
Make = Callable[..., HuggingFaceTranslator]


def said(text: str) -> Source:
    return Source(tuple(text.split()), "en", "de")


LONG = said("Well, yes, of course, the new bridge was closed for three months because of the rain. " * 3)
SHORT = said("So what did we learn?")


def never() -> bool:
    return False


def after(calls: int) -> Callable[[], bool]:
    """True from the (calls + 1)-th question on."""
    asked = iter(range(1_000_000))
    return lambda: next(asked) >= calls


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of an architecture's checkpoint, written once."""
    written: dict[str, Path] = {}

    def folder(architecture: str) -> Path:
        if architecture not in written:
            written[architecture] = save(architecture, tmp_path_factory.mktemp(architecture))
        return written[architecture]

    return folder


@pytest.fixture
def make(checkpoint: Callable[[str], Path], tmp_path: Path) -> Iterator[Make]:
    """Translators, closed at the end."""
    made: list[HuggingFaceTranslator] = []

    def build(
        architecture: str = "gemma3",
        seam: str = "hf_qk_fast",
        heads: Sequence[tuple[int, int]] | None = CHOSEN,
        query_row: str = "predicting",
        prompt: str = "few_shot",
        **options: Any,
    ) -> HuggingFaceTranslator:
        settings = {"n_ctx": 2048, "device": "cpu", "threads": 1, "cache": tmp_path, **options}
        made.append(HuggingFaceTranslator(checkpoint(architecture), prompt, heads, query_row, seam=seam, **settings))
        return made[-1]

    yield build
    for translator in made:
        translator.close()


def draft(
    translator: HuggingFaceTranslator,
    source: Source = LONG,
    prefill: Sequence[int] = (),
    limit: int = 8,
    session: str = "session",
) -> Draft:
    return translator.draft(session, source, prefill, limit, never)


def script(translator: HuggingFaceTranslator, monkeypatch: pytest.MonkeyPatch, tokens: Sequence[int]) -> list[int]:
    """Let the model say `tokens`, whatever it computes. Returns the lengths of the passes that were made."""
    real, left, lengths = translator._pass, list(tokens), []

    def scripted(text: Any, ids: list[int]) -> int:
        lengths.append(len(ids))
        real(text, ids)
        return left.pop(0)

    monkeypatch.setattr(translator, "_pass", scripted)
    return lengths


def assert_same(one: Draft, other: Draft, tolerance: float = 1e-5) -> None:
    assert one.token_ids == other.token_ids
    assert one.finish == other.finish
    for a, b in ((one.rows, other.rows), (one.prompt, other.prompt), (one.suffix, other.suffix)):
        np.testing.assert_allclose(a, b, atol=tolerance, rtol=0)


# ------------------------------------------------------------ the seams agree


@pytest.mark.parametrize("query_row", ["predicting", "own"])
@pytest.mark.parametrize("architecture", ALL)
def test_every_head_agrees_beyond_the_window(make: Make, architecture: str, query_row: str) -> None:
    eager, fast = (make(architecture, seam, None) for seam in SEAMS)
    target = eager.encode_target(TARGET)
    rows = [translator.teacher_force(LONG, target, query_row) for translator in (eager, fast)]
    assert eager.heads == fast.heads
    assert rows[0].shape == (len(eager.heads), len(target), len(LONG.units))
    assert np.isfinite(rows[0]).all()
    assert rows[0].max() > 0.02
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-5, rtol=0)
    # the rows of the two conventions are the same ones, a token apart
    other = fast.teacher_force(LONG, target, "own" if query_row == "predicting" else "predicting")
    early, late = (other, rows[1]) if query_row == "predicting" else (rows[1], other)
    np.testing.assert_allclose(early[:, :-1], late[:, 1:], atol=1e-5, rtol=0)


@pytest.mark.parametrize("query_row", ["predicting", "own"])
@pytest.mark.parametrize("architecture", ALL)
def test_drafts_agree_and_their_masses_sum_to_one(make: Make, architecture: str, query_row: str) -> None:
    eager, fast = (make(architecture, seam, query_row=query_row) for seam in SEAMS)
    prefill = eager.encode_target("Ja, natürlich,")
    drafts = []
    for translator in (eager, fast):
        translator.warm_up("en", "de")
        drafts.append(draft(translator, prefill=prefill))
        assert translator.health.self_test == "passed"
        assert (translator.health.rows_expected, translator.health.bad_rate) == (len(drafts[-1].token_ids), 0)
    assert drafts[0].token_ids
    assert drafts[0].prefill_ids == tuple(prefill)
    assert_same(drafts[0], drafts[1])
    for made in drafts:
        np.testing.assert_allclose(made.rows.sum(1) + made.prompt + made.suffix, 1, atol=1e-5)
        assert (made.suffix > 0).all()


@pytest.mark.parametrize("architecture", ALL)
def test_a_conversation_agrees_as_well(make: Make, architecture: str) -> None:
    eager, fast = (make(architecture, seam, prompt="chat") for seam in SEAMS)
    source = Source(SHORT.units, "en", "de", context="A talk.", history=(("Good morning.", "Guten Morgen."),))
    assert fast.layout_id == "chat-1"
    assert_same(draft(eager, source), draft(fast, source))


@pytest.mark.parametrize("seam", SEAMS)
def test_sliding_heads_see_nothing_beyond_their_window(make: Make, seam: str) -> None:
    translator = make("gemma3", seam, [(0, 0), (2, 0)])
    rows = translator.teacher_force(LONG, translator.encode_target(TARGET), "predicting")
    far = len(LONG.units) - WINDOW  # every unit takes a token at least
    assert (rows[0, :, :far] == 0).all()
    assert (rows[1, :, :far] > 0).all()
    assert (rows[0, 0, -2:] > 0).any()


def test_the_mean_of_the_heads_is_the_drafts_row(make: Make) -> None:
    translator = make("qwen3")
    made = draft(translator)
    forced = translator.teacher_force(LONG, made.token_ids)
    np.testing.assert_allclose(made.rows, forced.mean(axis=0), atol=1e-5, rtol=0)


def test_the_order_of_heads_is_kept(make: Make) -> None:
    everything = make("qwen3", heads=None)
    some = make("qwen3", heads=CHOSEN)
    target = some.encode_target(TARGET)
    rows = dict(zip(everything.heads, everything.teacher_force(LONG, target), strict=True))
    np.testing.assert_allclose(some.teacher_force(LONG, target), [rows[head] for head in CHOSEN], atol=1e-6)


def test_bfloat16_rows_are_distributions(make: Make) -> None:
    translator = make("gemma3", dtype="bfloat16")
    translator.warm_up("en", "de")
    made = draft(translator)
    assert translator.health.self_test == "passed"
    np.testing.assert_allclose(made.rows.sum(1) + made.prompt + made.suffix, 1, atol=1e-3)


# ------------------------------------------------------------ heads


@pytest.mark.parametrize("architecture", ["gemma4", "gemma4-multimodal"])
@pytest.mark.parametrize("seam", SEAMS)
def test_heads_on_shared_keys_are_refused(make: Make, architecture: str, seam: str) -> None:
    assert not HuggingFaceTranslator.supports_shared_kv
    with pytest.raises(TranslationError, match=r"^Head \(5, 0\) cannot be read here: layer 5 shares the keys"):
        make(architecture, seam, [(1, 0), (5, 0)])
    readable = make(architecture, seam, None)
    assert readable.geometry == (6, HEADS)
    assert {layer for layer, _ in readable.heads} == {0, 1, 2, 3}


@pytest.mark.parametrize(("heads", "sentence"), [([(9, 0)], "lies outside"), ([], "No attention heads")])
def test_heads_that_are_not_there_are_refused(make: Make, heads: list[tuple[int, int]], sentence: str) -> None:
    with pytest.raises(TranslationError, match=sentence):
        make("llama", heads=heads)


# ------------------------------------------------------------ the cache


@pytest.mark.parametrize("seam", SEAMS)
@pytest.mark.parametrize("architecture", ["gemma3", "gemma4-multimodal", "qwen2"])
def test_what_was_drafted_before_does_not_matter(make: Make, architecture: str, seam: str) -> None:
    """Going back in sliding layers, far beyond their window, must leave no trace."""
    used, fresh = make(architecture, seam), make(architecture, seam)
    growing = [Source(LONG.units[:n], "en", "de") for n in (len(LONG.units), 20, 21, 40)]
    for source in growing:
        made = draft(used, source)
    assert_same(made, draft(fresh, growing[-1]))
    assert_same(draft(used, SHORT, made.token_ids[:2]), draft(fresh, SHORT, made.token_ids[:2]))


def test_only_what_is_new_is_computed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = make()
    first = draft(translator, limit=4)
    lengths = script(translator, monkeypatch, [20, 21, 22])
    draft(translator, prefill=first.token_ids[:2], limit=3)
    assert lengths == [1, 1, 1]  # the prompt and two of the old tokens are there; the last token is fed again


def test_sessions_do_not_disturb_one_another(make: Make) -> None:
    translator, alone = make(), make()
    mixed = [draft(translator, source, session=name) for source, name in ((LONG, "a"), (SHORT, "b")) * 2]
    assert_same(mixed[2], draft(alone, LONG))
    assert_same(mixed[3], draft(alone, SHORT))
    translator.close_session("a")
    assert_same(draft(translator, LONG, session="a"), mixed[0])


def test_a_draft_waits_for_another_sessions_draft_and_can_be_cancelled(make: Make) -> None:
    translator = make()
    with translator._lock:
        waiting = threading.Thread(target=lambda: found.append(translator.draft("b", SHORT, [], 4, after(2))))
        found: list[Draft] = []
        waiting.start()
        waiting.join(30)
    assert found[0].finish == "cancelled"
    assert found[0].rows.shape == (0, len(SHORT.units))


# ------------------------------------------------------------ how a draft ends


def test_a_draft_ends_with_its_budget(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = make()
    script(translator, monkeypatch, range(20, 40))
    made = draft(translator, limit=5)
    assert (made.finish, made.token_ids) == ("length", (20, 21, 22, 23, 24))


@pytest.mark.parametrize("query_row", ["predicting", "own"])
@pytest.mark.parametrize("end", ["newline", "control"])
@pytest.mark.parametrize("seam", SEAMS)
def test_a_draft_stops_at_the_end_of_the_line(
    make: Make, monkeypatch: pytest.MonkeyPatch, seam: str, end: str, query_row: str
) -> None:
    translator = make("gemma3", seam, query_row=query_row)
    stop = translator._tokens.encode("\n") if end == "newline" else [5]
    script(translator, monkeypatch, [20, 21, *stop, 22])
    made = draft(translator)
    assert (made.finish, made.token_ids) == ("stop", (20, 21))
    assert not made.missing.any()
    np.testing.assert_allclose(made.rows.sum(1) + made.prompt + made.suffix, 1, atol=1e-5)


@pytest.mark.parametrize("query_row", ["predicting", "own"])
@pytest.mark.parametrize("calls", range(5))
def test_a_cancelled_draft_leaves_a_usable_session(make: Make, query_row: str, calls: int) -> None:
    translator, fresh = make(query_row=query_row), make(query_row=query_row)
    made = translator.draft("session", LONG, [], 8, after(calls))
    assert made.finish == "cancelled"
    assert len(made.token_ids) == max(0, calls - 2)
    assert_same(draft(translator), draft(fresh))


def test_a_draft_is_cut_to_the_context(make: Make) -> None:
    roomy = make()
    length = len(roomy._prepare(SHORT, 2048, 2048).ids)
    tight = make(n_ctx=length + 3)
    made = draft(tight, SHORT, limit=8)
    assert len(made.token_ids) == 3
    assert made.finish == "length"
    with pytest.raises(TranslationError, match="choose a larger context"):
        draft(make(n_ctx=length - 1), SHORT)


def test_target_text_is_encoded_as_the_prompt_continues(make: Make) -> None:
    few_shot, chat = make("qwen3"), make("qwen3", prompt="chat")
    assert b"".join(few_shot.pieces(few_shot.encode_target("Ja, gut "))) == b" Ja, gut"
    assert b"".join(chat.pieces(chat.encode_target("Ja, gut "))) == b"Ja, gut"
    assert few_shot.encode_target("  ") == []
    assert few_shot.count_tokens("Ja, gut") > 1


# ------------------------------------------------------------ when something is wrong


def test_rows_that_do_not_come_are_counted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = make()
    real = translator._seam.rows

    def poor(first: int, count: int) -> list[Any]:
        rows = real(first, count)
        rows[1] = None
        rows[2] = np.full_like(rows[2], np.nan)
        return rows

    monkeypatch.setattr(translator._seam, "rows", poor)
    made = draft(translator, limit=4)
    assert made.missing.tolist() == [False, True, False, False]
    assert np.isfinite(made.prompt).tolist() == [True, False, False, True]
    health = translator.health
    assert (health.rows_expected, health.rows_missing, health.rows_nonfinite) == (4, 1, 1)


def test_a_model_that_returns_no_attention_has_missing_rows(make: Make) -> None:
    translator = make("gemma3", "hf_eager")
    translator._seam.options = {}
    assert draft(translator, limit=3).missing.all()


def test_the_self_test_finds_heads_that_read_the_wrong_keys(
    make: Make, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    translator = make("qwen3")
    monkeypatch.setattr(LayerAttention, "kv_head", lambda self, head: 1 - head // self.groups)
    with caplog.at_level(logging.ERROR, "surtitle.mt"):
        translator.warm_up("en", "de")
    assert translator.health.self_test == "failed"
    assert "cannot be trusted" in caplog.text


@pytest.mark.parametrize(
    ("attribute", "value", "word"), [("scaling", 0.7, "scale 0.7"), ("sliding_window", 5, "window 5")]
)
def test_attention_that_is_called_otherwise_than_its_module_says_is_refused(
    make: Make, attribute: str, value: float, word: str
) -> None:
    translator = make("gemma3", heads=[(0, 0)])
    setattr(translator._model.model.layers[0].self_attn, attribute, value)
    with pytest.raises(TranslationError, match=f"runs with {word}"):
        draft(translator, SHORT)


def test_a_failed_pass_does_not_spoil_the_session(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    translator, fresh = make(), make()
    draft(translator)
    last = translator._model.model.layers[-1]
    monkeypatch.setattr(last, "forward", lambda *args, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        draft(translator, SHORT)
    monkeypatch.undo()
    assert_same(draft(translator, SHORT), draft(fresh, SHORT))


def test_a_shortage_of_memory_is_one_sentence(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = make()

    def short(*args: Any, **options: Any) -> None:
        raise RuntimeError("not enough memory: you tried to allocate 8 bytes.\nlines of detail")

    monkeypatch.setattr(translator._model, "forward", short)
    with pytest.raises(TranslationError, match=r"next step: not enough memory: you tried to allocate 8 bytes\.$"):
        draft(translator)


def test_a_model_that_computes_nothing_usable_says_so(make: Make) -> None:
    translator = make("llama")
    with torch.no_grad():
        translator._model.lm_head.weight.fill_(torch.nan)
    with pytest.raises(TranslationError, match="computes no usable numbers in float32"):
        draft(translator)


def test_a_closed_translator_says_so(make: Make) -> None:
    translator = make()
    translator.close()
    translator.close()
    with pytest.raises(TranslationError, match="has been closed"):
        draft(translator)
