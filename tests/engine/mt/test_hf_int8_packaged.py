"""The packaged Gemma with int8 weights and the Latin output layer, against the exact one: how much may differ."""

# ruff: noqa: E402 - what needs torch comes behind the skip
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("transformers")
torch = pytest.importorskip("torch")

from engine.alignatt.units import split_units
from engine.models import cache_folder, resolve
from engine.mt.contract import Source
from engine.mt.huggingface import HuggingFaceTranslator

pytestmark = [pytest.mark.models, pytest.mark.slow, pytest.mark.timeout(900)]

HEADS = ((13, 3), (11, 2), (11, 3), (12, 1))
PAIRS = (
    ("Last week we opened a new library in the old part of the town.",
     "Letzte Woche haben wir eine neue Bibliothek in der Altstadt eröffnet."),
    ("If you have any questions about the program, please ask me after the talk.",
     "Wenn Sie Fragen zum Programm haben, fragen Sie mich bitte nach dem Vortrag."),
    ("My sister works in a hospital near the sea.", "Meine Schwester arbeitet in einem Krankenhaus am Meer."),
)  # fmt: skip


def opened(**options: str) -> HuggingFaceTranslator:
    return HuggingFaceTranslator(
        resolve("gemma-3-270m"),
        "few_shot",
        HEADS,
        "predicting",
        cache=cache_folder(),
        device="cpu",
        threads=1,
        **options,
    )


@pytest.fixture(scope="module")
def exact() -> Iterator[HuggingFaceTranslator]:
    translator = opened(dtype="float32")
    yield translator
    translator.close()


@pytest.fixture(scope="module")
def fast() -> Iterator[HuggingFaceTranslator]:
    translator = opened(quantise="int8", output_tokens="latin")
    translator.warm_up("en", "de")
    yield translator
    translator.close()


def said(text: str) -> Source:
    return Source(tuple(split_units(text, "en")), "en", "de")


def best(translator: HuggingFaceTranslator, text: str, target: str) -> tuple[list[int], list[float]]:
    """The most probable token at each place of a given translation, and by how many logits it leads."""
    ids = translator.encode_target(target)
    prompt = translator._prepare(said(text), 900, 900).ids
    with torch.inference_mode():
        output = translator._model(input_ids=torch.tensor([[*prompt, *ids]]), logits_to_keep=len(ids) + 1)
    logits = output.logits[0].float()
    values, places = logits.topk(2)
    tokens = places[:, 0] if translator._outputs is None else translator._outputs[places[:, 0]]
    return tokens.tolist(), (values[:, 0] - values[:, 1]).tolist()


def test_tokens_agree(exact: HuggingFaceTranslator, fast: HuggingFaceTranslator) -> None:
    """All where the exact model leads by more than one logit, and nine of ten of the rest included."""
    equal: list[bool] = []
    for text, target in PAIRS:
        tokens, leads = best(exact, text, target)
        found, _ = best(fast, text, target)
        assert [one for one, lead in zip(tokens, leads, strict=True) if lead > 1] == [
            one for one, lead in zip(found, leads, strict=True) if lead > 1
        ]
        equal += [one == other for one, other in zip(tokens, found, strict=True)]
    assert np.mean(equal) > 0.9


def test_rows_agree(exact: HuggingFaceTranslator, fast: HuggingFaceTranslator) -> None:
    assert fast.health.self_test == "passed"
    for text, target in PAIRS:
        ids = exact.encode_target(target)
        one, other = (model.teacher_force(said(text), ids).mean(axis=0) for model in (exact, fast))
        assert np.abs(one - other).mean() < 0.005


def test_latin_makes_the_output_layer_smaller(exact: HuggingFaceTranslator, fast: HuggingFaceTranslator) -> None:
    assert fast._outputs is not None
    assert len(fast._outputs) < 0.7 * exact._model.get_output_embeddings().weight.shape[0]
