"""A model of transformers made faster on the CPU: int8 weights, and an output layer of the tokens that can occur.

Weights alone are quantised, one scale for each output (symmetric, round to nearest); activations stay bfloat16.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class Int8Linear(nn.Module):
    """A linear layer with int8 weights [out, in] and bfloat16 scales [out]."""

    weight: Tensor
    scale: Tensor

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        scale = weight.float().abs().amax(dim=1).clamp_min(1e-12) / 127
        self.register_buffer("weight", torch.round(weight.float() / scale[:, None]).to(torch.int8))
        self.register_buffer("scale", scale.to(torch.bfloat16))
        self.register_buffer("bias", bias)

    def forward(self, inputs: Tensor) -> Tensor:
        """`inputs` [..., in] in bfloat16; [..., out]."""
        rows = inputs.reshape(-1, inputs.shape[-1])
        outputs = torch.ops.aten._weight_int8pack_mm(rows, self.weight, self.scale)
        if self.bias is not None:
            outputs = outputs + self.bias
        return outputs.view(*inputs.shape[:-1], -1)


def quantise_layers(model: Any) -> int:
    """Replace every linear layer of the decoder by an `Int8Linear`, in place; how many there were.

    The output layer stays: it may share its weights with the embedding.
    """
    output = model.get_output_embeddings()
    found = [
        (parent, name, child)
        for parent in model.modules()
        for name, child in parent.named_children()
        if type(child) is nn.Linear and child is not output
    ]
    with torch.no_grad():
        for parent, name, child in found:
            setattr(parent, name, Int8Linear(child.weight, child.bias))
    return len(found)


def shrink_output(model: Any, tokens: Sequence[int] | None, int8: bool) -> Tensor:
    """Replace the output layer by one of `tokens` alone (None: all), in place; their ids, [outputs].

    The embedding keeps every token.
    """
    output = model.get_output_embeddings()
    size = output.weight.shape[0]
    kept = torch.arange(size) if tokens is None else torch.tensor([token for token in sorted(tokens) if token < size])
    with torch.no_grad():
        weight = output.weight if tokens is None else output.weight[kept]
        bias = None if output.bias is None else output.bias[kept]
        if int8:
            layer: nn.Module = Int8Linear(weight, bias)
        else:
            layer = nn.Linear(weight.shape[1], len(kept), bias=bias is not None, dtype=weight.dtype)
            layer.weight, layer.bias = nn.Parameter(weight.clone()), None if bias is None else nn.Parameter(bias)
    model.set_output_embeddings(layer)
    return kept
