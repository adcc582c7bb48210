"""A LoRA adapter in the weights of a tiny checkpoint: what it adds, and what is refused."""

# ruff: noqa: E402 - what needs torch comes behind the skip
from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from safetensors.torch import save_file

from engine.mt.contract import TranslationError
from engine.mt.hf_adapter import merge
from tests.engine.mt.tiny_models import ARCHITECTURES

PREFIX = "base_model.model.model.layers"
Q, DOWN = f"{PREFIX}.0.self_attn.q_proj", f"{PREFIX}.3.mlp.down_proj"


def model(dtype: object = torch.float32) -> object:
    class_name, make_config, _, _ = ARCHITECTURES["gemma3"]
    torch.manual_seed(1)
    return getattr(transformers, class_name)(make_config(100)).to(dtype)


def tensors() -> dict[str, object]:
    random = torch.Generator().manual_seed(2)
    shapes = {(Q, "A"): (3, 32), (Q, "B"): (32, 3), (DOWN, "A"): (3, 48), (DOWN, "B"): (32, 3)}
    return {
        f"{name}.lora_{side}.weight": torch.randn(shape, generator=random) for (name, side), shape in shapes.items()
    }


def weight(of: object, layer: int, path: str) -> object:
    return of.get_submodule(f"model.layers.{layer}.{path}").weight.detach().clone()


def test_the_product_is_added_at_its_scale(tmp_path: Path) -> None:
    adapter = tensors()
    save_file(adapter, tmp_path / "a.safetensors")
    changed = model()
    before = {path: weight(changed, layer, path) for layer, path in ((0, "self_attn.q_proj"), (3, "mlp.down_proj"))}
    untouched = weight(changed, 1, "self_attn.q_proj")
    assert merge(changed, tmp_path / "a.safetensors", 0.5) == 2
    for name, layer, path in ((Q, 0, "self_attn.q_proj"), (DOWN, 3, "mlp.down_proj")):
        change = 0.5 * adapter[f"{name}.lora_B.weight"] @ adapter[f"{name}.lora_A.weight"]
        torch.testing.assert_close(weight(changed, layer, path), before[path] + change)
    assert torch.equal(weight(changed, 1, "self_attn.q_proj"), untouched)


def test_a_bfloat16_model_is_rounded_once(tmp_path: Path) -> None:
    save_file({name: tensor.half() for name, tensor in tensors().items()}, tmp_path / "a.safetensors")
    exact, rounded = model(), model(torch.bfloat16)
    exact.load_state_dict({name: tensor.float() for name, tensor in rounded.state_dict().items()})
    for one in (exact, rounded):
        merge(one, tmp_path / "a.safetensors", 2.0)
    assert torch.equal(weight(rounded, 0, "self_attn.q_proj"), weight(exact, 0, "self_attn.q_proj").bfloat16())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda found: found.pop(f"{Q}.lora_B.weight"),
            "one of the two matrices of model.layers.0.self_attn.q_proj is",
        ),
        (lambda found: found.update({"lm_head.bias": torch.zeros(3)}), "'lm_head.bias' is no matrix of an adapter"),
        (lambda found: found.update({f"{Q}.lora_B.weight": torch.zeros(31, 3)}), r"is \(32, 32\), not \(31, 32\)"),
        (lambda found: found.update({f"{Q}.lora_B.weight": torch.zeros(32, 2)}), "self_attn.q_proj is"),
        (lambda found: found.clear(), "it is empty"),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path: Path, change: object, said: str) -> None:
    found = tensors()
    change(found)
    save_file(found, tmp_path / "a.safetensors")
    with pytest.raises(TranslationError, match=rf"does not fit the model: .*{said}.*\.$"):
        merge(model(), tmp_path / "a.safetensors", 1.0)


def test_a_module_that_the_model_lacks(tmp_path: Path) -> None:
    found = {name.replace("layers.0.", "layers.9."): tensor for name, tensor in tensors().items()}
    save_file(found, tmp_path / "a.safetensors")
    with pytest.raises(TranslationError, match=r"the model has no model\.layers\.9\.self_attn\.q_proj\.$"):
        merge(model(), tmp_path / "a.safetensors", 1.0)


@pytest.mark.parametrize("content", [b"", b"not an adapter at all"])
def test_a_file_of_another_kind(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    with pytest.raises(TranslationError, match="cannot be read"):
        merge(model(), path, 1.0)
