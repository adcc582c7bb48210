"""A LoRA adapter added to the weights of a model of transformers: weight += scale · B·A (Hu et al. 2021)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from engine.mt.contract import TranslationError

_NAME = re.compile(r"base_model\.model\.(.+)\.lora_([AB])\.weight")


def merge(model: Any, path: Path, scale: float) -> int:
    """Add the adapter at `path`, whose tensors are named as PEFT names them, in place; how many weights it changes.

    Sums are made in float32 and rounded once to the weight's own type. Raises `TranslationError` for a file that is
    no adapter or does not fit; the model may then be changed in part.
    """
    pairs = _pairs(path)
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, (down, up) in pairs.items():
            weight = weights.get(f"{name}.weight")
            if weight is None:
                raise _misfit(path, f"the model has no {name}")
            if weight.shape != (up.shape[0], down.shape[1]) or up.shape[1] != down.shape[0]:
                raise _misfit(path, f"{name} is {tuple(weight.shape)}, not {(up.shape[0], down.shape[1])}")
            change = scale * (up.float() @ down.float())
            weight.copy_(weight.float() + change.to(weight.device))
    return len(pairs)


def _pairs(path: Path) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Module name: A [rank, in] and B [out, rank]."""
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError, ValueError) as error:
        raise TranslationError(f"The adapter file {path} cannot be read: {str(error).rstrip('.')}.") from error
    found: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in tensors.items():
        match = _NAME.fullmatch(key)
        if match is None or tensor.dim() != 2:
            raise _misfit(path, f"'{key}' is no matrix of an adapter")
        found.setdefault(match[1], {})[match[2]] = tensor
    for name, sides in found.items():
        if len(sides) != 2:
            raise _misfit(path, f"one of the two matrices of {name} is missing")
    if not found:
        raise _misfit(path, "it is empty")
    return {name: (sides["A"], sides["B"]) for name, sides in found.items()}


def _misfit(path: Path, why: str) -> TranslationError:
    return TranslationError(f"The adapter file {path} does not fit the model: {why}.")
