"""What the CPU's fast path changes of a tiny model, and by how much."""

# ruff: noqa: E402 - what needs torch comes behind the skip
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from engine.mt.contract import Source, TranslationError
from engine.mt.hf_int8 import Int8Linear, quantise_layers, shrink_output
from engine.mt.huggingface import HuggingFaceTranslator
from tests.engine.mt.tiny_models import save

SOURCE = Source(tuple("Well, yes, of course, the new bridge was closed for three months.".split()), "en", "de")
TARGET = "Ja, natürlich, die neue Brücke war gesperrt"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("gemma3", tmp_path_factory.mktemp("gemma3"))


def opened(checkpoint: Path, **options: str) -> HuggingFaceTranslator:
    return HuggingFaceTranslator(
        checkpoint, "few_shot", [(2, 3), (0, 1)], "predicting", cache=checkpoint, device="cpu", threads=1, **options
    )


def test_an_int8_layer_is_near_the_layer() -> None:
    random = torch.Generator().manual_seed(3)
    weight, bias = torch.randn((40, 64), generator=random), torch.randn(40, generator=random)
    inputs = torch.randn((2, 5, 64), generator=random)
    made = Int8Linear(weight, bias.bfloat16())(inputs.bfloat16()).float()
    exact = inputs @ weight.T + bias
    assert made.shape == (2, 5, 40)
    assert (made - exact).norm() / exact.norm() < 0.02
    assert Int8Linear(torch.zeros(16, 16))(torch.ones((1, 16), dtype=torch.bfloat16)).abs().max() == 0


def test_every_linear_layer_but_the_last_is_quantised(checkpoint: Path) -> None:
    translator = opened(checkpoint)
    model = translator._model
    assert quantise_layers(model) == 4 * 7
    assert not [name for name, child in model.named_modules() if type(child) is torch.nn.Linear and name != "lm_head"]
    translator.close()


def test_a_smaller_output_layer_says_the_same_of_its_tokens(checkpoint: Path) -> None:
    whole, small = opened(checkpoint), opened(checkpoint)
    tokens = [5, 3, 9, 100]
    kept = shrink_output(small._model, [*tokens, 10**6], int8=False)
    assert kept.tolist() == sorted(tokens)
    ids = torch.tensor([[2, 40, 50]])
    with torch.inference_mode():
        torch.testing.assert_close(
            small._model(input_ids=ids).logits, whole._model(input_ids=ids).logits[..., kept], rtol=0, atol=0
        )
    for translator in (whole, small):
        translator.close()


def test_drafts_of_the_fast_path_have_rows(checkpoint: Path) -> None:
    translator = opened(checkpoint, quantise="int8", output_tokens="latin")
    translator.warm_up("en", "de")
    assert translator.health.self_test == "passed"
    made = translator.draft("s", SOURCE, (), 12, lambda: False)
    assert made.token_ids
    np.testing.assert_allclose(made.rows.sum(1) + made.prompt + made.suffix, 1, atol=0.02)
    translator.close()


def test_latin_alone_changes_no_draft_in_latin(checkpoint: Path) -> None:
    """The best token of all is the best of those that are left, if it is among them."""
    whole, latin = opened(checkpoint), opened(checkpoint, output_tokens="latin")
    assert latin._outputs is not None
    expected = whole.draft("s", SOURCE, (), 12, lambda: False).token_ids
    found = latin.draft("s", SOURCE, (), 12, lambda: False).token_ids
    allowed = set(latin._outputs.tolist())
    agreed = next((at for at, token in enumerate(expected) if token not in allowed), len(expected))
    assert found[:agreed] == expected[:agreed]
    for translator in (whole, latin):
        translator.close()


def test_rows_of_int8_are_near_the_exact_ones(checkpoint: Path) -> None:
    exact, fast = opened(checkpoint), opened(checkpoint, quantise="int8")
    target = exact.encode_target(TARGET)
    one, other = (translator.teacher_force(SOURCE, target) for translator in (exact, fast))
    assert np.abs(one - other).mean() < 0.02
    for translator in (exact, fast):
        translator.close()


def test_int8_goes_with_bfloat16(checkpoint: Path) -> None:
    with pytest.raises(TranslationError, match=r"^Int8 weights go with bfloat16, not float32; .*\.$"):
        opened(checkpoint, quantise="int8", dtype="float32")
