"""Reading the geometry of attention from a model, without torch: the specs name attributes and nothing else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.alignatt.heads import Head
from engine.mt.attention_spec import SPECS, AttentionSpecError, describe


def layer(**changes: Any) -> SimpleNamespace:
    attention = {"scaling": 0.5, "num_key_value_groups": 2, "sliding_window": None, "is_kv_shared_layer": False}
    return SimpleNamespace(self_attn=SimpleNamespace(**{**attention, **changes}))


def model(architecture: str, layers: list[Any], heads: int = 4) -> Any:
    """An object that looks like a model of transformers to a spec."""
    decoder = SimpleNamespace(layers=layers, config=SimpleNamespace(num_attention_heads=heads))
    kind = type(architecture, (), {})
    made: Any = kind()
    made.model = SimpleNamespace(language_model=decoder) if "Conditional" in architecture else decoder
    return made


@pytest.mark.parametrize("architecture", sorted(SPECS))
def test_every_architecture_is_read_where_it_keeps_its_layers(architecture: str) -> None:
    found = describe(model(architecture, [layer(sliding_window=512), layer()]))
    slides = SPECS[architecture].window is not None
    assert (found.architecture, found.query_heads, len(found.layers)) == (architecture, 4, 2)
    assert [one.window for one in found.layers] == ([512, None] if slides else [None, None])
    assert found.layers[0].scale == 0.5
    assert [found.layers[0].kv_head(head) for head in range(4)] == [0, 0, 1, 1]


def test_an_unknown_architecture_is_refused_with_those_that_work() -> None:
    with pytest.raises(
        AttentionSpecError, match=r"^Attention of MambaForCausalLM cannot be read; supported are Gemma3"
    ):
        describe(model("MambaForCausalLM", []))


@pytest.mark.parametrize("name", ["scaling", "num_key_value_groups", "sliding_window", "is_kv_shared_layer"])
def test_a_missing_attribute_is_named(name: str) -> None:
    broken = layer()
    delattr(broken.self_attn, name)
    with pytest.raises(AttentionSpecError, match=rf"has no attribute '{name}'.*[^.]*\.$"):
        describe(model("Gemma4ForCausalLM", [layer(), broken]))


def test_a_model_without_layers_is_named() -> None:
    broken = model("Qwen3ForCausalLM", [])
    del broken.model.layers
    with pytest.raises(AttentionSpecError, match="has no attribute 'layers'"):
        describe(broken)


def test_heads_on_shared_keys_are_refused() -> None:
    found = describe(model("Gemma4ForCausalLM", [layer(), layer(is_kv_shared_layer=True)]))
    found.check_heads([Head(0, 3)])
    with pytest.raises(AttentionSpecError, match=r"^Head \(1, 2\) cannot be read here: layer 1 shares the keys"):
        found.check_heads([Head(0, 3), Head(1, 2)])


@pytest.mark.parametrize("head", [Head(2, 0), Head(0, 4), Head(-1, 0)])
def test_heads_out_of_range_are_refused(head: Head) -> None:
    with pytest.raises(AttentionSpecError, match="lies outside Qwen2ForCausalLM with 2 layers of 4 heads"):
        describe(model("Qwen2ForCausalLM", [layer(), layer()])).check_heads([head])
