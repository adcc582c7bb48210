"""Seeded random weights: each tensor from its own name, so that every seam on a device gets the same model.

Scales are such that activations and attention stay in a natural range. The final norm has random signs: with tied
random embeddings greedy decoding would otherwise repeat one token for ever.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import torch

from engine.benchmarks.architectures import LOAD_FORMAT

Shape = tuple[int, ...]


@torch.no_grad()
def tensor(name: str, shape: Shape, device: Any, dtype: torch.dtype) -> torch.Tensor:
    """The tensor of a name, as transformers calls it."""
    generator = torch.Generator(device=device).manual_seed(zlib.crc32(name.encode()))
    if name.endswith("layer_scalar"):
        return torch.ones(shape, device=device, dtype=dtype)
    if "norm" in name:
        noise = torch.randn(shape, generator=generator, device=device)
        if name == "model.norm.weight":
            return torch.where(noise < 0, -1.0, 1.0).to(dtype)
        level = 0.42 if name.endswith(("q_norm.weight", "k_norm.weight")) else 0.2 if "post_" in name else 1.0
        return (level * (1 + 0.1 * noise)).to(dtype)
    return torch.randn(shape, generator=generator, device=device, dtype=dtype) * shape[-1] ** -0.5


def shapes(config: Any) -> list[tuple[str, Shape]]:
    """Names and shapes of the text model's tensors; a tied output layer is left out, and so are towers."""
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config.get_text_config())
    tied = bool(config.get_text_config().tie_word_embeddings)
    return [(name, tuple(t.shape)) for name, t in model.state_dict().items() if not (tied and name == "lm_head.weight")]


def decode_bytes(config: Any, itemsize: int = 2, quantised: bool = False) -> int:
    """Bytes of weights that one decode step must read: all but embedding tables of which it reads single rows.

    `quantised`: matrices but the output layer take a byte a value, as with fp8.
    """
    total = 0
    for name, shape in shapes(config):
        if "embed_tokens_per_layer" in name or (name.endswith("embed_tokens.weight") and not _tied(config)):
            continue
        small = quantised and len(shape) == 2 and not name.endswith(("embed_tokens.weight", "lm_head.weight"))
        total += torch.Size(shape).numel() * (1 if small else itemsize)
    return total


def _tied(config: Any) -> bool:
    return bool(config.get_text_config().tie_word_embeddings)


def build(config: Any, attention: str, device: str, dtype: torch.dtype) -> Any:
    """A model of transformers with these weights."""
    from transformers import AutoModelForCausalLM

    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config.get_text_config(), dtype=dtype, attn_implementation=attention)
    names, state = {name for name, _ in shapes(config)}, model.state_dict()
    with torch.no_grad():
        for name, value in state.items():
            if name in names:
                value.copy_(tensor(name, tuple(value.shape), device, dtype))
    return model.eval()


def stream(config: Any, device: Any, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    """Names and tensors, one at a time, as vLLM loads them. A wrapped text model has the values of the bare one."""
    wrapped = config.get_text_config() is not config
    for name, shape in shapes(config):
        shown = name.replace("model.", "model.language_model.", 1) if wrapped else name
        yield shown, tensor(name, shape, device, dtype)


def register_with_vllm() -> None:
    """Make `load_format=LOAD_FORMAT` known to vLLM in this process."""
    from transformers import AutoConfig
    from vllm.model_executor.model_loader import register_model_loader
    from vllm.model_executor.model_loader.base_loader import BaseModelLoader

    class RandomLoader(BaseModelLoader):
        def download_model(self, model_config: Any) -> None:
            """There is nothing to download."""

        def load_weights(self, model: Any, model_config: Any) -> None:
            # Weights that are quantised as they come have no place yet.
            device = next(one.device for one in model.parameters() if not one.is_meta)
            config = AutoConfig.from_pretrained(model_config.model)
            model.load_weights(stream(config, device, model_config.dtype))

    register_model_loader(LOAD_FORMAT)(RandomLoader)
