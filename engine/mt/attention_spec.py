"""What each supported architecture of transformers calls the parts of attention that rows are computed from.

No torch in here: a spec only names attributes, `describe` reads them from a loaded model and says what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.alignatt.heads import Head


class AttentionSpecError(Exception):
    """A model whose attention cannot be read; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class AttentionSpec:
    """Names of one architecture. `decoder`: path from the model to the module that holds `layers`.

    `window` and `shared_kv` are None where no layer of the architecture slides or shares keys and values.
    """

    decoder: str
    attention: str = "self_attn"
    scale: str = "scaling"
    groups: str = "num_key_value_groups"
    window: str | None = "sliding_window"
    shared_kv: str | None = None


_TEXT, _WRAPPED = "model", "model.language_model"

SPECS: dict[str, AttentionSpec] = {
    "Gemma3ForCausalLM": AttentionSpec(_TEXT),
    "Gemma3ForConditionalGeneration": AttentionSpec(_WRAPPED),
    "Gemma4ForCausalLM": AttentionSpec(_TEXT, shared_kv="is_kv_shared_layer"),
    "Gemma4ForConditionalGeneration": AttentionSpec(_WRAPPED, shared_kv="is_kv_shared_layer"),
    "Qwen2ForCausalLM": AttentionSpec(_TEXT),
    "Qwen3ForCausalLM": AttentionSpec(_TEXT),
    "LlamaForCausalLM": AttentionSpec(_TEXT, window=None),
}


@dataclass(frozen=True, slots=True)
class LayerAttention:
    """Attention of one layer. `groups`: query heads for each key/value head. `scale` multiplies q·k.

    `window`: how many positions a query sees, itself included; None sees all. `shared_kv`: the layer computes no keys
    of its own.
    """

    layer: int
    module: Any
    query_heads: int
    groups: int
    scale: float
    window: int | None
    shared_kv: bool

    def kv_head(self, head: int) -> int:
        """The key/value head that a query head reads."""
        return head // self.groups


@dataclass(frozen=True, slots=True)
class ModelAttention:
    """All layers of a model, in order."""

    architecture: str
    query_heads: int
    layers: tuple[LayerAttention, ...]

    def check_heads(self, heads: Sequence[Head]) -> None:
        """Raises `AttentionSpecError` for a head that the model lacks or whose layer computes no keys of its own."""
        for chosen in heads:
            if not (0 <= chosen.layer < len(self.layers) and 0 <= chosen.head < self.query_heads):
                raise AttentionSpecError(
                    f"Head ({chosen.layer}, {chosen.head}) lies outside {self.architecture} with {len(self.layers)} "
                    f"layers of {self.query_heads} heads."
                )
            if self.layers[chosen.layer].shared_kv:
                raise AttentionSpecError(
                    f"Head ({chosen.layer}, {chosen.head}) cannot be read here: layer {chosen.layer} shares the keys "
                    f"of an earlier layer; choose a head set without it."
                )


def describe(model: Any) -> ModelAttention:
    """Read a loaded model. Raises `AttentionSpecError` naming the architecture or the attribute that is missing."""
    architecture = type(model).__name__
    spec = SPECS.get(architecture)
    if spec is None:
        raise AttentionSpecError(
            f"Attention of {architecture} cannot be read; supported are {', '.join(sorted(SPECS))}."
        )
    decoder = model
    for name in spec.decoder.split("."):
        decoder = _read(decoder, name, architecture)
    heads = int(_read(_read(decoder, "config", architecture), "num_attention_heads", architecture))
    modules = [_read(layer, spec.attention, architecture) for layer in _read(decoder, "layers", architecture)]
    layers = tuple(_layer(spec, index, module, heads, architecture) for index, module in enumerate(modules))
    return ModelAttention(architecture, heads, layers)


def _layer(spec: AttentionSpec, index: int, module: Any, heads: int, architecture: str) -> LayerAttention:
    window = _read(module, spec.window, architecture) if spec.window else None
    return LayerAttention(
        layer=index,
        module=module,
        query_heads=heads,
        groups=int(_read(module, spec.groups, architecture)),
        scale=float(_read(module, spec.scale, architecture)),
        window=int(window) if window else None,
        shared_kv=bool(_read(module, spec.shared_kv, architecture)) if spec.shared_kv else False,
    )


def _read(owner: Any, name: str, architecture: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError as error:
        raise AttentionSpecError(
            f"Attention of {architecture} cannot be read: its {type(owner).__name__} has no attribute '{name}'; "
            f"use the versions of transformers that the extra 'torch' names."
        ) from error
