"""The prepared file against the one that it was made from: the same model, fewer tokens, the adapter inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("gguf")

from engine.alignatt.units import split_units
from engine.models import resolve
from engine.mt.contract import Source, TranslationError
from engine.mt.gguf_prepare import prepare
from engine.mt.llamacpp import LlamaCppTranslator
from tests.engine.mt.adapters import GEMMA_SHA256, random_matrices, write_gguf

pytestmark = [pytest.mark.models, pytest.mark.slow, pytest.mark.timeout(300)]

HEADS = ((13, 3), (11, 2), (11, 3), (12, 1))
PAIRS = (
    ("Last week we opened a new library in the old part of the town.",
     "Letzte Woche haben wir eine neue Bibliothek in der Altstadt eröffnet."),
    ("If you have any questions about the program, please ask me after the talk.",
     "Wenn Sie Fragen zum Programm haben, fragen Sie mich bitte nach dem Vortrag."),
)  # fmt: skip
Open = Callable[..., LlamaCppTranslator]


def said(text: str) -> Source:
    return Source(tuple(split_units(text, "en")), "en", "de")


def untold(_fraction: float, _text: str) -> None:
    pass


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("adapter") / "adapter.gguf"
    write_gguf(path, random_matrices(8, 0.1), 16.0)
    return path


@pytest.fixture(scope="module")
def prepared(cache: Path) -> Path:
    return prepare(resolve("gemma-3-270m"), GEMMA_SHA256, None, cache, untold)


@pytest.fixture(scope="module")
def merged(cache: Path, adapter: Path) -> Path:
    return prepare(resolve("gemma-3-270m"), GEMMA_SHA256, adapter, cache, untold)


@pytest.fixture(scope="module")
def opened() -> Iterator[Open]:
    made: list[LlamaCppTranslator] = []

    def build(path: Path, adapter: Path | None = None) -> LlamaCppTranslator:
        made.append(LlamaCppTranslator(path, "talks", HEADS, "predicting", n_ctx=512, adapter=adapter))
        return made[-1]

    yield build
    for translator in made:
        translator.close()


@pytest.fixture(scope="module")
def base(opened: Open) -> LlamaCppTranslator:
    return opened(resolve("gemma-3-270m"))


@pytest.fixture(scope="module")
def small(opened: Open, prepared: Path) -> LlamaCppTranslator:
    return opened(prepared)


def test_it_says_the_same_with_the_same_rows(base: LlamaCppTranslator, small: LlamaCppTranslator) -> None:
    assert small._context._n_vocab < 0.7 * base._context._n_vocab
    for text, _ in PAIRS:
        one, other = (model.draft("s", said(text), (), 16, never) for model in (base, small))
        assert one.pieces == other.pieces
        np.testing.assert_array_equal(one.rows, other.rows)


@pytest.mark.parametrize("text", [PAIRS[0][0], PAIRS[0][1], "“Café” — 3½ naïve façades… 🙂 2,5 %\nŁódź", "a  b   c"])
def test_latin_text_has_the_same_tokens(base: LlamaCppTranslator, small: LlamaCppTranslator, text: str) -> None:
    here, there = (model.pieces(model._context.encode(text)) for model in (base, small))
    assert here == there
    assert b"".join(there) == text.encode()


def test_other_scripts_are_spelt_in_bytes(small: LlamaCppTranslator) -> None:
    text = "東京 мост"
    pieces = small.pieces(small._context.encode(text))
    assert b"".join(pieces) == text.encode()
    assert len(pieces) > len(text)


def test_the_end_marks_are_still_known(base: LlamaCppTranslator, small: LlamaCppTranslator) -> None:
    for mark in ("<eos>", "<end_of_turn>", "<bos>"):
        for model in (base, small):
            (token,) = model._context._tokenise(mark, True)
            assert model._context.ends_text(token)
            assert model._context.piece(token, control=True) == mark.encode()


def test_a_merged_adapter_is_the_adapter(opened: Open, base: LlamaCppTranslator, merged: Path, adapter: Path) -> None:
    applied, inside = opened(resolve("gemma-3-270m"), adapter), opened(merged)
    agreed = changed = asked = 0
    for text, target in PAIRS:
        one, other, without = (
            model.teacher_force(said(text), model.encode_target(target)).mean(axis=0)
            for model in (applied, inside, base)
        )
        assert np.abs(one - other).mean() < 0.3 * np.abs(one - without).mean()
        pieces = applied.pieces(applied.encode_target(target))
        for at in range(0, len(pieces), 2):
            before = b"".join(pieces[:at]).decode()
            drafts = [
                model.draft("s", said(text), model.encode_target(before), 1, never).pieces
                for model in (applied, inside, base)
            ]
            agreed += drafts[0] == drafts[1]
            changed += drafts[0] != drafts[2]
            asked += 1
    # Two quantisations part where two tokens are nearly as likely, which depends on the processor's instructions.
    assert agreed / asked > 0.7
    assert changed / asked > 0.3, "the adapter changes what is said"


def test_it_is_made_once(cache: Path, prepared: Path) -> None:
    before = prepared.stat().st_mtime_ns
    told: list[float] = []
    assert prepare(resolve("gemma-3-270m"), GEMMA_SHA256, None, cache, lambda at, _: told.append(at)) == prepared
    assert prepared.stat().st_mtime_ns == before
    assert told == []


def test_another_adapter_is_another_file(cache: Path, prepared: Path, merged: Path, adapter: Path) -> None:
    assert prepared != merged
    assert not list((cache / "prepared").glob(".*"))


def test_a_torn_file_is_made_again(tmp_path: Path) -> None:
    path = prepare(resolve("gemma-3-270m"), GEMMA_SHA256, None, tmp_path, untold)
    size = path.stat().st_size
    path.write_bytes(b"torn")
    told: list[float] = []
    assert prepare(resolve("gemma-3-270m"), GEMMA_SHA256, None, tmp_path, lambda at, _: told.append(at)) == path
    assert path.stat().st_size == size
    assert told == sorted(told)
    assert told[-1] == 1.0


def refused(adapter: Path | None, cache: Path) -> str:
    with pytest.raises(TranslationError) as caught:
        prepare(resolve("gemma-3-270m"), GEMMA_SHA256, adapter, cache, untold)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message


def test_an_adapter_that_does_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "adapter.gguf"
    matrices = random_matrices(2, 0.1)
    down, up = matrices[3, "mlp.up_proj"]
    write_gguf(path, {(99, "mlp.up_proj"): (down, up)}, 4.0)
    assert "it has no blk.99.ffn_up.weight" in refused(path, tmp_path / "cache")
    write_gguf(path, {(3, "mlp.up_proj"): (down, up[:-1])}, 4.0)
    assert "blk.3.ffn_up.weight has another shape" in refused(path, tmp_path / "cache")
    assert not list((tmp_path / "cache" / "prepared").iterdir())


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "prepared").write_text("a file where the folder belongs", encoding="utf-8")
    assert "cannot be prepared in" in refused(None, tmp_path)
