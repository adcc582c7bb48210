"""Whether an adapter's files hold what was trained: the two against each other, and against a model's logits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.finetune.export import GGUF, SAFETENSORS, put, read_gguf, read_safetensors
from engine.finetune.rows import FinetuneError

ROUNDING = 0.01  # of the logits' spread: float16 against float32 matrices


def same_files(folder: Path) -> int:
    """How many matrices the two files share. Raises `FinetuneError` unless all are equal to the bit."""
    ours = read_safetensors(folder / SAFETENSORS)
    theirs, _ = read_gguf(folder / GGUF)
    if ours.keys() != theirs.keys():
        raise FinetuneError(f"{SAFETENSORS} and {GGUF} in {folder} do not name the same matrices.")
    for name, values in ours.items():
        if values.shape != theirs[name].shape or not np.array_equal(values, theirs[name]):
            raise FinetuneError(f"{SAFETENSORS} and {GGUF} in {folder} differ in {name}.")
    return len(ours)


def same_logits(folder: Path, model: Any, ids: list[list[int]]) -> float:
    """Root mean square difference of logits, as a share of their standard deviation, once the file's matrices take
    the place of the trained ones in `model`. Raises `FinetuneError` above `ROUNDING`."""
    before = _logits(model, ids)
    put(model, read_safetensors(folder / SAFETENSORS))
    after = _logits(model, ids)
    share = float((after - before).square().mean().sqrt() / before.std())
    if not share <= ROUNDING:
        raise FinetuneError(f"The adapter in {folder} gives other logits than the trained model ({share:.1%} apart).")
    return share


def _logits(model: Any, ids: list[list[int]]) -> torch.Tensor:
    model.eval()
    with torch.inference_mode():
        found = [model(input_ids=torch.tensor([one], device=model.device)).logits[0].float().cpu() for one in ids]
    return torch.cat(found)
