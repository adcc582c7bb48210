"""The llama.cpp translator on the packaged model: what it drafts is not judged here, what it reports about it is."""

from __future__ import annotations

import dataclasses
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from engine.alignatt.draft import Draft
from engine.models import resolve
from engine.mt import ggml
from engine.mt.contract import Source, TranslationError
from engine.mt.llamacpp import LlamaCppTranslator
from engine.mt.prompt import FewShotLayout, unit_of_tokens

pytestmark = pytest.mark.models

HEADS = ((13, 3), (11, 2), (11, 3), (12, 1))


def said(text: str) -> Source:
    return Source(tuple(text.split()), "en", "de")


LIBRARY = said("Last week we opened a new library in the old part of the town.")
OTHER = said("My sister works in a hospital.")


def never() -> bool:
    return False


def after(calls: int) -> Callable[[], bool]:
    """True from the (calls + 1)-th question on."""
    asked = iter(range(1_000_000))
    return lambda: next(asked) >= calls


@pytest.fixture(scope="session")
def gguf() -> Path:
    return resolve("gemma-3-270m")


@pytest.fixture(scope="module")
def shared(gguf: Path) -> Iterator[LlamaCppTranslator]:
    translator = LlamaCppTranslator(gguf, "few_shot", HEADS, "predicting", n_ctx=512)
    yield translator
    translator.close()


@pytest.fixture
def translator(shared: LlamaCppTranslator) -> LlamaCppTranslator:
    """The one translator of this module, its cache back at the fixed prompt of en-de."""
    reset(shared)
    shared.health = dataclasses.replace(shared.health, rows_expected=0, rows_missing=0, rows_nonfinite=0)
    return shared


@pytest.fixture
def make(gguf: Path) -> Iterator[Callable[..., LlamaCppTranslator]]:
    """Further translators on the same weights, closed at the end."""
    made: list[LlamaCppTranslator] = []

    def build(
        heads: Sequence[tuple[int, int]] | None = HEADS, query_row: str = "predicting", **options: int
    ) -> LlamaCppTranslator:
        made.append(LlamaCppTranslator(gguf, "few_shot", heads, query_row, n_ctx=options.pop("n_ctx", 512), **options))
        return made[-1]

    yield build
    for translator in made:
        translator.close()


def reset(translator: LlamaCppTranslator) -> None:
    """Back to the fixed prompt, in a state that later resets repeat to the bit: its last token computed by itself."""
    translator.warm_up("en", "de")
    translator.warm_up("en", "de")


def draft(
    translator: LlamaCppTranslator, source: Source = LIBRARY, prefill: Sequence[int] = (), limit: int = 24
) -> Draft:
    return translator.draft("session", source, prefill, limit, never)


def assert_distributions(made: Draft, units: int) -> None:
    assert made.rows.shape == (len(made.token_ids), units)
    assert not made.missing.any()
    assert (made.rows >= 0).all()
    np.testing.assert_allclose(made.rows.sum(1) + made.prompt + made.suffix, 1, atol=1e-3)


# ------------------------------------------------------------ drafts and rows


def test_rows_are_distributions_over_units_prompt_and_target(translator: LlamaCppTranslator) -> None:
    made = draft(translator)
    assert made.token_ids
    assert_distributions(made, len(LIBRARY.units))
    assert made.suffix[0] == 0
    assert (made.suffix[1:] > 0).all()
    assert translator.health.self_test == "passed"
    assert translator.health.rows_expected == len(made.token_ids)
    assert translator.health.bad_rate == 0


def test_the_heads_look_at_the_source(translator: LlamaCppTranslator) -> None:
    """Calibrated heads put far more on the source than chance, and move through it."""
    made = draft(translator)
    assert made.rows.sum(1).mean() > 0.2
    assert np.corrcoef(np.arange(len(made.rows)), made.rows.argmax(1))[0, 1] > 0.5


def test_a_draft_is_one_line_that_brings_its_space(translator: LlamaCppTranslator) -> None:
    made = draft(translator, limit=60)
    assert made.finish == "stop"
    assert made.text.startswith(" ")
    assert "\n" not in made.text
    assert len(made.pieces) == len(made.token_ids)


def test_a_draft_ends_with_its_budget(translator: LlamaCppTranslator) -> None:
    made = draft(translator, limit=3)
    assert (len(made.token_ids), made.finish) == (3, "length")


def test_the_same_state_gives_the_same_rows(translator: LlamaCppTranslator) -> None:
    first = draft(translator)
    draft(translator, OTHER)
    reset(translator)
    again = draft(translator)
    assert again.token_ids == first.token_ids
    np.testing.assert_array_equal(again.rows, first.rows)


def test_a_cached_prefix_gives_the_rows_of_a_fresh_context(
    translator: LlamaCppTranslator, make: Callable[..., LlamaCppTranslator]
) -> None:
    """Batches are split differently, so quantised products round differently: close, not equal."""
    target = translator.encode_target("Letzte Woche haben wir eine neue Bibliothek eröffnet.")
    draft(translator, OTHER)
    cached = translator.teacher_force(LIBRARY, target)
    fresh = make().teacher_force(LIBRARY, target)
    np.testing.assert_allclose(cached, fresh, atol=0.08)
    assert np.abs(cached - fresh).mean() < 2e-3


def test_only_what_is_new_is_computed(translator: LlamaCppTranslator, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    decode = translator._context.decode
    monkeypatch.setattr(translator._context, "decode", lambda ids, rows: decoded.append(len(ids)) or decode(ids, rows))
    draft(translator, limit=1)
    assert decoded[0] < 30, "the examples are computed once, in warm_up"
    decoded.clear()
    grown = dataclasses.replace(LIBRARY, units=(*LIBRARY.units, "Today"))
    draft(translator, grown, limit=1)
    assert decoded[0] < 8, "a source that grows is computed from where it grew"


def test_a_prefill_is_continued(translator: LlamaCppTranslator) -> None:
    whole = draft(translator)
    prefill = whole.token_ids[:6]
    rest = draft(translator, prefill=prefill)
    assert rest.prefill_ids == prefill
    assert rest.token_ids == whole.token_ids[6:]
    assert_distributions(rest, len(LIBRARY.units))
    assert rest.suffix[0] > 0, "released tokens count as earlier target"


def test_a_prefill_of_ones_own_is_forced(translator: LlamaCppTranslator) -> None:
    prefill = translator.encode_target("  Am Dienstag ")
    assert b"".join(translator.pieces(prefill)) == b" Am Dienstag"
    made = draft(translator, prefill=prefill, limit=4)
    assert made.text
    assert not made.text.startswith(" Am Dienstag")


def test_own_rows_are_the_predicting_rows_of_the_next_token(make: Callable[..., LlamaCppTranslator]) -> None:
    own, predicting = draft(make(query_row="own"), limit=8), draft(make(), limit=8)
    assert own.token_ids == predicting.token_ids
    assert_distributions(own, len(LIBRARY.units))
    np.testing.assert_allclose(own.rows[:-1], predicting.rows[1:], atol=0.02)
    assert own.suffix[0] > 0


def test_several_sessions_share_one_model(translator: LlamaCppTranslator) -> None:
    made: dict[str, Draft] = {}

    def work(name: str, source: Source) -> None:
        for _ in range(3):
            made[name] = translator.draft(name, source, (), 6, never)
        translator.close_session(name)

    threads = [threading.Thread(target=work, args=pair) for pair in (("a", LIBRARY), ("b", OTHER))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_distributions(made["a"], len(LIBRARY.units))
    assert_distributions(made["b"], len(OTHER.units))
    assert made["a"].text != made["b"].text


def test_no_units_is_no_reason_to_fail(translator: LlamaCppTranslator) -> None:
    made = draft(translator, Source((), "en", "de"), limit=2)
    assert made.rows.shape == (len(made.token_ids), 0)


# ------------------------------------------------------------ teacher forcing


def test_teacher_forced_heads_average_to_the_rows_of_a_draft(translator: LlamaCppTranslator) -> None:
    made = draft(translator)
    forced = translator.teacher_force(LIBRARY, made.token_ids)
    assert forced.shape == (len(HEADS), len(made.token_ids), len(LIBRARY.units))
    np.testing.assert_allclose(forced.mean(0), made.rows, atol=0.08)


def test_every_head_of_the_model_can_be_read(make: Callable[..., LlamaCppTranslator]) -> None:
    translator = make(heads=None)
    assert translator.geometry == (18, 4)
    assert len(translator.heads) == 72
    target = translator.encode_target("Letzte Woche haben wir eine neue Bibliothek eröffnet.")
    own, predicting = (translator.teacher_force(LIBRARY, target, row) for row in ("own", "predicting"))
    assert own.shape == (72, len(target), len(LIBRARY.units))
    np.testing.assert_allclose(own[:, :-1], predicting[:, 1:], atol=0.05)
    few = make().teacher_force(LIBRARY, target)
    chosen = [translator.heads.index(head) for head in HEADS]
    np.testing.assert_allclose(predicting[chosen], few, atol=0.08)


# ------------------------------------------------------------ tokens and units


@pytest.mark.parametrize(
    "units",
    [
        ("Well,", "yes,", "of", "course,"),
        ("In", "2024,", "Müller’s", "café", "—", "“naïve”", "🎉🏳️‍🌈", "cost", "$3.50", "(or", "so)."),
        ("東京へ", "行きます。", "ok?"),
    ],
)
def test_every_token_of_the_span_belongs_to_its_unit(translator: LlamaCppTranslator, units: tuple[str, ...]) -> None:
    prompt = FewShotLayout().render(Source(units, "en", "de"))
    tokens = translator._context.tokenise(prompt)
    raw = prompt.text.encode()
    found = unit_of_tokens(prompt.text, tokens.spans, prompt.unit_spans).tolist()
    inside = [unit for unit in found if unit >= 0]
    assert inside == sorted(inside)
    assert sorted(set(inside)) == list(range(len(units)))
    first = found.index(0)
    assert -1 not in found[first : first + len(inside)]
    spelt = b"".join(raw[a:b] for (a, b), unit in zip(tokens.spans, found, strict=True) if unit >= 0)
    assert spelt.decode().strip(" ") == " ".join(units)


def test_tokens_are_counted_without_a_begin_mark(translator: LlamaCppTranslator) -> None:
    assert translator.count_tokens("Well, yes") == 3
    assert translator.count_tokens("") == 0


# ------------------------------------------------------------ cancellation


def test_cancelled_before_it_began(translator: LlamaCppTranslator) -> None:
    made = translator.draft("session", LIBRARY, (), 8, lambda: True)
    assert (made.finish, made.token_ids, made.rows.shape) == ("cancelled", (), (0, len(LIBRARY.units)))


@pytest.mark.parametrize("query_row", ["predicting", "own"])
def test_cancelled_on_the_way(make: Callable[..., LlamaCppTranslator], query_row: str) -> None:
    translator = make(query_row=query_row)
    reset(translator)
    whole = draft(translator)
    reset(translator)
    made = translator.draft("session", LIBRARY, (), 24, after(6))
    assert made.finish == "cancelled"
    assert 0 < len(made.token_ids) < len(whole.token_ids)
    assert made.token_ids == whole.token_ids[: len(made.token_ids)]
    assert_distributions(made, len(LIBRARY.units))
    reset(translator)
    assert draft(translator).token_ids == whole.token_ids


def test_cancelled_while_another_session_drafts(translator: LlamaCppTranslator) -> None:
    with translator._lock:
        made = translator.draft("session", LIBRARY, (), 8, after(2))
    assert made.finish == "cancelled"


# ------------------------------------------------------------ long prompts


def test_long_prompts_are_computed_in_slices(
    translator: LlamaCppTranslator, make: Callable[..., LlamaCppTranslator]
) -> None:
    target = translator.encode_target("Letzte Woche haben wir eine neue Bibliothek eröffnet.")
    sliced = make(n_batch=7)
    forced = sliced.teacher_force(LIBRARY, target)
    np.testing.assert_allclose(forced, translator.teacher_force(LIBRARY, target), atol=0.08)
    made = draft(sliced, limit=4)
    assert_distributions(made, len(LIBRARY.units))


def test_a_cancelled_slice_leaves_a_usable_cache(make: Callable[..., LlamaCppTranslator]) -> None:
    translator = make(n_batch=16)
    assert translator.draft("session", LIBRARY, (), 4, after(3)).finish == "cancelled"
    assert_distributions(draft(translator, limit=4), len(LIBRARY.units))


def test_the_draft_is_cut_to_the_context_that_is_left(translator: LlamaCppTranslator) -> None:
    made = draft(translator, said("word " * 340), limit=200)
    assert len(made.token_ids) < 40
    assert_distributions(made, 340)


def test_an_utterance_beyond_the_context_is_one_sentence(translator: LlamaCppTranslator) -> None:
    with pytest.raises(TranslationError, match=r"open utterance needs \d+ tokens .* choose a larger context"):
        draft(translator, said("word " * 600))
    assert draft(translator, limit=2).token_ids


def test_context_and_history_give_way(translator: LlamaCppTranslator) -> None:
    around = dataclasses.replace(LIBRARY, context="bees " * 900, history=(("One.", "Eins."),) * 20)
    made = draft(translator, around, limit=40)
    assert_distributions(made, len(LIBRARY.units))


# ------------------------------------------------------------ when rows do not arrive


def failing_read(monkeypatch: pytest.MonkeyPatch, fail_at: int, error: BaseException) -> None:
    read, count = ggml.RowCapture._read, iter(range(1_000_000))

    def sometimes(self: ggml.RowCapture, address: int, layer: int) -> None:
        if next(count) == fail_at:
            raise error
        read(self, address, layer)

    monkeypatch.setattr(ggml.RowCapture, "_read", sometimes)


def test_a_row_that_cannot_be_read_is_missing_and_the_draft_goes_on(
    translator: LlamaCppTranslator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = draft(translator)
    reset(translator)
    failing_read(monkeypatch, fail_at=10, error=ValueError("torn"))
    with caplog.at_level(logging.WARNING, "surtitle.mt"):
        made = draft(translator)
    assert made.token_ids == whole.token_ids
    assert made.missing.sum() == 1
    assert np.isnan(made.rows[made.missing]).all()
    assert np.isfinite(made.rows[~made.missing]).all()
    assert translator.health.rows_missing == 1
    assert "torn" in caplog.text


def test_an_interrupt_in_the_callback_reaches_the_caller(
    translator: LlamaCppTranslator, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing_read(monkeypatch, fail_at=6, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        draft(translator)
    assert_distributions(draft(translator, limit=4), len(LIBRARY.units))


def test_a_graph_that_was_cut_short_is_computed_again(
    make: Callable[..., LlamaCppTranslator], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal handler that raises at the callback's entry makes ctypes answer False: status 0, stale logits."""
    whole = draft(make())
    build, count = ggml.RowCapture._make_callback, iter(range(1_000_000))

    def cutting(self: ggml.RowCapture) -> Callable[[int, bool, object], bool]:
        callback = build(self)
        return lambda address, ask, data: callback(address, ask, data) and (bool(ask) or next(count) != 13)

    monkeypatch.setattr(ggml.RowCapture, "_make_callback", cutting)
    made = draft(make())
    assert made.token_ids == whole.token_ids
    assert made.missing.sum() == 1
    np.testing.assert_allclose(made.rows[~made.missing], whole.rows[~made.missing], atol=1e-6)


def test_rows_that_never_come_fail_the_self_test_and_not_the_draft(
    make: Callable[..., LlamaCppTranslator], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ggml, "_NODE", b"renamed-")
    translator = make()
    translator.warm_up("en", "de")
    assert translator.health.self_test == "failed"
    made = draft(translator, limit=4)
    assert made.missing.all()
    assert translator.health.bad_rate == 1


# ------------------------------------------------------------ bad input


def refused(path: Path, heads: Sequence[tuple[int, int]] = HEADS, **options: int) -> str:
    with pytest.raises(TranslationError) as caught:
        LlamaCppTranslator(path, "few_shot", heads, "predicting", **options).close()
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("head", [(18, 0), (0, 4), (-1, 0), (3, -1)])
def test_heads_out_of_range(gguf: Path, head: tuple[int, int]) -> None:
    assert f"no head {head}" in refused(gguf, [*HEADS, head])


def test_another_layout_of_tensors(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ggml, "_OBJECT_BYTES", 48)
    assert "another tensor layout; install version" in refused(gguf)


@pytest.mark.parametrize("size", [4, 100, 20_000, 3_000_000, 100_000_000])
def test_a_truncated_file(gguf: Path, tmp_path: Path, size: int) -> None:
    damaged = tmp_path / "damaged.gguf"
    with gguf.open("rb") as file:
        damaged.write_bytes(file.read(size))
    message = refused(damaged)
    assert str(damaged) in message
    assert "damaged" in message


def test_a_file_of_another_kind(tmp_path: Path) -> None:
    other = tmp_path / "talk.wav"
    other.write_bytes(b"RIFF....WAVE")
    assert "is not a GGUF model file" in refused(other)


@pytest.mark.parametrize("name", ["absent.gguf", "."])
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    assert "cannot be read" in refused(tmp_path / name)


def test_chat_needs_a_template(gguf: Path) -> None:
    translator = LlamaCppTranslator(gguf, "chat", HEADS, "predicting", n_ctx=512)
    with pytest.raises(TranslationError, match="no chat template"):
        draft(translator)
    translator.close()


def test_a_closed_translator_says_so(make: Callable[..., LlamaCppTranslator]) -> None:
    translator = make()
    translator.close()
    translator.close()
    translator.close_session("session")
    with pytest.raises(TranslationError, match="closed"):
        draft(translator)
