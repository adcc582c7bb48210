"""The packaged Gemma through transformers: both seams and llama.cpp must say the same about it.

The first run converts the weights into the user's cache (about a minute), later ones load them.
"""

# ruff: noqa: E402 - what needs torch comes behind the skip
from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from engine.alignatt.draft import Draft
from engine.alignatt.units import split_units
from engine.models import cache_folder, resolve
from engine.mt.contract import Source
from engine.mt.factory import create_translator
from engine.mt.huggingface import HuggingFaceTranslator
from engine.mt.llamacpp import LlamaCppTranslator
from engine.mt.prompt import FewShotLayout, byte_spans, unit_of_tokens
from engine.presets import load_preset

pytestmark = [pytest.mark.models, pytest.mark.slow, pytest.mark.timeout(900)]

HEADS = ((13, 3), (11, 2), (11, 3), (12, 1))
PAIRS = (
    ("Last week we opened a new library in the old part of the town.",
     "Letzte Woche haben wir eine neue Bibliothek in der Altstadt eröffnet."),
    ("If you have any questions about the program, please ask me after the talk.",
     "Wenn Sie Fragen zum Programm haben, fragen Sie mich bitte nach dem Vortrag."),
    ("My sister works in a hospital near the sea.", "Meine Schwester arbeitet in einem Krankenhaus am Meer."),
)  # fmt: skip
TALK = " ".join(source for source, _ in PAIRS)


def said(text: str) -> Source:
    return Source(tuple(split_units(text, "en")), "en", "de")


def never() -> bool:
    return False


@pytest.fixture(scope="module")
def translators() -> Iterator[dict[str, HuggingFaceTranslator]]:
    made = {
        seam: HuggingFaceTranslator(
            resolve("gemma-3-270m"), "few_shot", HEADS, "predicting", seam=seam, cache=cache_folder(), device="cpu",
            dtype="float32", threads=1,
        )
        for seam in ("hf_eager", "hf_qk_fast")
    }  # fmt: skip
    for translator in made.values():
        translator.warm_up("en", "de")
    yield made
    for translator in made.values():
        translator.close()


@pytest.fixture(scope="module")
def llama() -> Iterator[LlamaCppTranslator]:
    translator = LlamaCppTranslator(resolve("gemma-3-270m"), "few_shot", HEADS, "predicting", n_ctx=512)
    yield translator
    translator.close()


def test_the_seams_agree_on_drafts(translators: dict[str, HuggingFaceTranslator]) -> None:
    drafts: list[Draft] = []
    for translator in translators.values():
        assert translator.health.self_test == "passed"
        drafts.append(translator.draft("session", said(PAIRS[0][0]), [], 16, never))
        assert translator.health.bad_rate == 0
    eager, fast = drafts
    assert eager.token_ids
    assert eager.token_ids == fast.token_ids
    np.testing.assert_allclose(fast.rows, eager.rows, atol=1e-5, rtol=0)
    np.testing.assert_allclose(fast.prompt, eager.prompt, atol=1e-5, rtol=0)
    for made in drafts:
        np.testing.assert_allclose(made.rows.sum(1) + made.prompt + made.suffix, 1, atol=1e-5)


def test_the_seams_agree_beyond_the_window(translators: dict[str, HuggingFaceTranslator]) -> None:
    """Context and history push the fixed prompt out of the window of 512 tokens."""
    source = Source(said(PAIRS[0][0]).units, "en", "de", context=f"{TALK} " * 10, history=PAIRS[1:])
    rows: list[NDArray[np.float32]] = []
    for translator in translators.values():
        target = translator.encode_target(PAIRS[0][1])
        assert len(translator._prepare(source, 900, 900).ids) > 600
        rows.append(translator.teacher_force(source, target))
    assert np.isfinite(rows[0]).all()
    np.testing.assert_allclose(rows[1], rows[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("pair", range(len(PAIRS)))
def test_llama_cpp_looks_at_the_same_words(
    translators: dict[str, HuggingFaceTranslator], llama: LlamaCppTranslator, pair: int
) -> None:
    source, target = said(PAIRS[pair][0]), PAIRS[pair][1]
    fast = translators["hf_qk_fast"]
    ids = fast.encode_target(target)
    assert ids == llama.encode_target(target)
    here, there = (model.teacher_force(source, ids).mean(axis=0) for model in (fast, llama))
    # its products are quantised: rows differ in the second decimal, what they point at does not
    top = np.sort(here, axis=1)
    clear = top[:, -1] - top[:, -2] > 0.02
    assert clear.sum() > len(ids) / 2
    assert here.argmax(1)[clear].tolist() == there.argmax(1)[clear].tolist()


def test_prompts_are_the_same_tokens_as_in_llama_cpp(
    translators: dict[str, HuggingFaceTranslator], llama: LlamaCppTranslator
) -> None:
    for text in (TALK, "Well, yes, of course,", "“Café” — 3½ naïve façades… 漢字 🙂 <end_of_turn>", "a  b   c"):
        prompt = FewShotLayout().render(said(text))
        here, there = translators["hf_eager"]._tokens.tokenise(prompt), llama._context.tokenise(prompt)
        assert here.ids == there.ids
        mapped = [unit_of_tokens(prompt.text, tokens.spans, prompt.unit_spans).tolist() for tokens in (here, there)]
        assert mapped[0] == mapped[1]
        vocabulary = translators["hf_eager"]._tokens
        assert [vocabulary.piece(token) for token in here.ids] == [llama._context.piece(token) for token in here.ids]


def test_commas_belong_to_their_words(translators: dict[str, HuggingFaceTranslator]) -> None:
    """ "Well, yes, of course," is 4 units, and every token of the span belongs to one of them."""
    prompt = FewShotLayout().render(said("Well, yes, of course,"))
    tokens = translators["hf_qk_fast"]._tokens.tokenise(prompt)
    owners = unit_of_tokens(prompt.text, tokens.spans, prompt.unit_spans)
    spans = byte_spans(prompt.text, prompt.unit_spans)
    start, end = spans[0][0], spans[-1][1]
    inside = [owner for owner, (a, b) in zip(owners, tokens.spans, strict=True) if a < end and b > start]
    assert inside == [0, 0, 1, 1, 2, 3, 3]


def test_a_preset_opens_it() -> None:
    changes = {"kind": "huggingface", "seam": "hf_qk_fast", "device": "cpu"}
    preset = load_preset("laptop", {f"translator.{key}": value for key, value in changes.items()})
    told: list[float] = []
    translator = create_translator(preset, "en", "de", lambda fraction, text: told.append(fraction))
    try:
        assert (translator.health.mode, translator.health.self_test) == ("hf_qk_fast", "passed")
        assert told == sorted(told)
        assert told[-1] == 1.0
    finally:
        translator.close()


def test_the_conversion_is_made_once(translators: dict[str, HuggingFaceTranslator]) -> None:
    folders = [path for path in cache_folder().iterdir() if path.name.startswith("gemma-3-270m-q4_k_m-")]
    assert len(folders) == 1
    assert (folders[0] / "model.safetensors").stat().st_size < 600e6  # bfloat16
    assert not [path for path in cache_folder().iterdir() if path.name.startswith(".")]
