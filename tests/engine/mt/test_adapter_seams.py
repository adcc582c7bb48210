"""One random adapter on the packaged weights, through llama.cpp and through transformers: both must do the same.

The adapter changes what the model says a great deal, so that a seam that left it out would be found.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("gguf")

import torch

from engine.alignatt.units import split_units
from engine.models import cache_folder, resolve
from engine.mt.adapter import GGUF, SAFETENSORS, Adapter, load_adapter
from engine.mt.contract import Source, TranslationError
from engine.mt.drafting import prepare
from engine.mt.huggingface import HuggingFaceTranslator
from engine.mt.llamacpp import LlamaCppTranslator
from tests.engine.mt.adapters import random_matrices, write_adapter, write_gguf

pytestmark = [pytest.mark.models, pytest.mark.slow, pytest.mark.timeout(900)]

HEADS = ((13, 3), (11, 2), (11, 3), (12, 1))
PAIRS = (
    ("Last week we opened a new library in the old part of the town.",
     "Letzte Woche haben wir eine neue Bibliothek in der Altstadt eröffnet."),
    ("If you have any questions about the program, please ask me after the talk.",
     "Wenn Sie Fragen zum Programm haben, fragen Sie mich bitte nach dem Vortrag."),
    ("My sister works in a hospital near the sea.", "Meine Schwester arbeitet in einem Krankenhaus am Meer."),
)  # fmt: skip


def said(text: str) -> Source:
    return Source(tuple(split_units(text, "en")), "en", "de")


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory) -> Adapter:
    return load_adapter(str(write_adapter(tmp_path_factory.mktemp("adapter"), strength=0.1)))


@pytest.fixture(scope="module")
def llama(adapter: Adapter) -> Iterator[LlamaCppTranslator]:
    translator = LlamaCppTranslator(
        resolve("gemma-3-270m"), adapter.prompt, HEADS, "predicting", n_ctx=512, adapter=adapter.file(GGUF)
    )
    translator.warm_up("en", "de")
    yield translator
    translator.close()


@pytest.fixture(scope="module")
def bare() -> Iterator[LlamaCppTranslator]:
    translator = LlamaCppTranslator(resolve("gemma-3-270m"), "talks", HEADS, "predicting", n_ctx=512)
    yield translator
    translator.close()


def hugging_face(adapter: Adapter, seam: str) -> HuggingFaceTranslator:
    return HuggingFaceTranslator(
        resolve("gemma-3-270m"), adapter.prompt, HEADS, "predicting", seam=seam, cache=cache_folder(), device="cpu",
        dtype="float32", threads=1, adapter=(adapter.file(SAFETENSORS), adapter.scale),
    )  # fmt: skip


@pytest.fixture(scope="module")
def eager(adapter: Adapter) -> Iterator[HuggingFaceTranslator]:
    translator = hugging_face(adapter, "hf_eager")
    yield translator
    translator.close()


@pytest.fixture(scope="module")
def fast(adapter: Adapter) -> Iterator[HuggingFaceTranslator]:
    translator = hugging_face(adapter, "hf_qk_fast")
    translator.warm_up("en", "de")
    yield translator
    translator.close()


def llama_logits(translator: LlamaCppTranslator, ids: list[int]) -> np.ndarray:
    """Logits behind `ids`, computed in one batch."""
    from llama_cpp import llama_cpp as api

    context = translator._context
    context.keep(0)
    context.extend(ids, 0)
    return np.ctypeslib.as_array(api.llama_get_logits_ith(context._context, -1), (context._n_vocab,)).copy()


def prompt_ids(translator: LlamaCppTranslator, source: Source) -> list[int]:
    return prepare(translator._layout, source, translator._context.tokenise, 512, 512).ids


@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_logits_are_near_and_far_from_those_without(
    llama: LlamaCppTranslator, fast: HuggingFaceTranslator, bare: LlamaCppTranslator, pair: int
) -> None:
    source, target = said(PAIRS[pair][0]), PAIRS[pair][1]
    ids = [*prompt_ids(llama, source), *llama.encode_target(target)[:4]]
    with torch.inference_mode():
        exact = fast._model(input_ids=torch.tensor([ids]), logits_to_keep=1).logits[0, -1].numpy()
    here, without = llama_logits(llama, ids), llama_logits(bare, ids)
    near = np.corrcoef(here, exact[: len(here)])[0, 1]
    assert near > 0.99
    assert np.corrcoef(without, exact[: len(here)])[0, 1] < 1 - 5 * (1 - near)


@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_rows_point_at_the_same_words(
    llama: LlamaCppTranslator, fast: HuggingFaceTranslator, eager: HuggingFaceTranslator, pair: int
) -> None:
    source, target = said(PAIRS[pair][0]), PAIRS[pair][1]
    ids = llama.encode_target(target)
    assert ids == fast.encode_target(target)
    exact, quick, there = (model.teacher_force(source, ids).mean(axis=0) for model in (eager, fast, llama))
    np.testing.assert_allclose(quick, exact, atol=1e-5, rtol=0)
    top = np.sort(exact, axis=1)
    clear = top[:, -1] - top[:, -2] > 0.02
    assert clear.sum() > len(ids) / 3
    assert exact.argmax(1)[clear].tolist() == there.argmax(1)[clear].tolist()


def test_greedy_tokens_agree_between_the_torch_seams(eager: HuggingFaceTranslator, fast: HuggingFaceTranslator) -> None:
    one, other = (model.draft("s", said(PAIRS[0][0]), [], 16, never) for model in (eager, fast))
    assert one.token_ids == other.token_ids
    np.testing.assert_allclose(other.rows, one.rows, atol=1e-5, rtol=0)


def test_greedy_tokens_agree_with_llama_cpp(llama: LlamaCppTranslator, fast: HuggingFaceTranslator) -> None:
    """Products in llama.cpp are quantised, so near ties may fall the other way; what is clear may not."""
    clear = 0
    for text, target in PAIRS:
        prompt, answer = prompt_ids(llama, said(text)), llama.encode_target(target)
        for at in range(0, len(answer), 2):
            ids = [*prompt, *answer[:at]]
            with torch.inference_mode():
                exact = fast._model(input_ids=torch.tensor([ids]), logits_to_keep=1).logits[0, -1]
            (best, second), token = exact.topk(2).values.tolist(), int(exact.argmax())
            if best - second > 0.5:
                clear += 1
                assert int(llama_logits(llama, ids).argmax()) == token
    assert clear >= 4


def test_rows_of_llama_cpp_are_distributions(llama: LlamaCppTranslator, bare: LlamaCppTranslator) -> None:
    assert llama.health.self_test == "passed"
    made = llama.draft("s", said(PAIRS[0][0]), (), 16, never)
    assert made.token_ids
    assert not made.missing.any()
    np.testing.assert_allclose(made.rows.sum(1) + made.prompt + made.suffix, 1, atol=1e-3)
    assert made.token_ids != bare.draft("s", said(PAIRS[0][0]), (), 16, never).token_ids


def test_rows_of_a_draft_are_those_of_its_own_text(llama: LlamaCppTranslator) -> None:
    made = llama.draft("s", said(PAIRS[1][0]), (), 12, never)
    forced = llama.teacher_force(said(PAIRS[1][0]), made.token_ids)
    np.testing.assert_allclose(forced.mean(0), made.rows, atol=0.08)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not an adapter"])
def test_a_damaged_adapter_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "adapter.gguf"
    path.write_bytes(content)
    with pytest.raises(TranslationError, match=r"^The adapter file .* does not fit the model: .*\.$"):
        LlamaCppTranslator(resolve("gemma-3-270m"), "talks", HEADS, "predicting", n_ctx=512, adapter=path)


def test_an_adapter_of_another_architecture(tmp_path: Path) -> None:
    path = tmp_path / "adapter.gguf"
    write_gguf(path, random_matrices(2, 0.1), 4.0, architecture="llama")
    with pytest.raises(TranslationError, match="model arch and LoRA arch mismatch"):
        LlamaCppTranslator(resolve("gemma-3-270m"), "talks", HEADS, "predicting", n_ctx=512, adapter=path)
