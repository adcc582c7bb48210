"""The packaged weights for training: found or joined from parts, checked, dequantised; low-rank matrices on them."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from peft.tuners.tuners_utils import BaseTunerLayer

from engine.finetune.rows import FinetuneError
from engine.models import ModelError, resolve
from engine.mt.examples import EXAMPLES
from engine.mt.hf_weights import Loaded, choose, load
from engine.packaged import PACKAGED

BASE = "gemma-3-270m"
ADAPTER = "default"
BLOCK = 1 << 20
LONGEST_SPELLING = 0.5  # tokens a character; Gemma's needs 0.2 to 0.3 for European languages


@dataclass(frozen=True, slots=True)
class Base:
    """The weights that an adapter is for: a GGUF file, or a folder of transformers; sha256 of the weights file."""

    path: Path
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class LowRank:
    """Shape of an adapter. `modules`: the linear layers that get matrices, as transformers names them."""

    rank: int
    alpha: float
    dropout: float
    modules: tuple[str, ...]


def find_base(model: str | None, parts: Path | None, work: Path) -> Base:
    """The base weights: of a path or packaged name, or joined from the parts in a folder (into `work`).

    A GGUF file must be the packaged one. Raises `FinetuneError` naming the checksum that differs.
    """
    packaged = PACKAGED[BASE].files[0]
    try:
        path = _joined(parts, work / packaged.name, packaged.sha256) if parts else resolve(model or BASE)
    except ModelError as error:
        raise FinetuneError(str(error)) from error
    if path.is_dir():
        weights = path / "model.safetensors"
        if not weights.is_file():
            raise FinetuneError(f"There is no model.safetensors in {path}.")
        return Base(path, path.name, _sha256(weights))
    if (found := _sha256(path)) != packaged.sha256:
        raise FinetuneError(f"{path} is not {packaged.name}: its sha256 is {found}, not {packaged.sha256}.")
    return Base(path, packaged.name, found)


def load_base(base: Base, device: str, dtype: str, cache: Path) -> Loaded:
    """The base model and its tokeniser. `cache` keeps the dequantised weights of a GGUF file.

    Raises `TranslationError` for weights that do not load, `FinetuneError` for a tokeniser that is wrong.
    """
    device, dtype = choose(device, dtype)
    loaded = load(base.path, dtype=dtype, device=device, implementation="sdpa", cache=cache)
    if base.path.is_file():
        check_tokeniser(loaded.tokeniser)
    return loaded


def check_tokeniser(tokeniser: Any) -> None:
    """Raises `FinetuneError` for a tokeniser that lost its merges and spells: transformers 5.17 makes such a one."""
    text = " ".join(" ".join(sentences) for sentences in EXAMPLES.values())
    if len(tokeniser(text, add_special_tokens=False)["input_ids"]) > LONGEST_SPELLING * len(text):
        raise FinetuneError(
            f"transformers {transformers.__version__} spells text letter by letter with the tokeniser of the weights; "
            "use the version that pyproject.toml asks for."
        )


def add_low_rank(model: Any, shape: LowRank) -> None:
    """Put float32 matrices on the model's linear layers, in place; they alone are trained. Its output stays."""
    config = LoraConfig(
        r=shape.rank, lora_alpha=shape.alpha, lora_dropout=shape.dropout, target_modules=list(shape.modules)
    )
    inject_adapter_in_model(config, model, adapter_name=ADAPTER)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)
        if "lora_" in name:
            parameter.data = parameter.data.float()


def matrices(model: Any) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """A [rank, in] and B [out, rank] of each linear layer that has them, by its name in the model."""
    return {
        name: (module.lora_A[ADAPTER].weight, module.lora_B[ADAPTER].weight)
        for name, module in model.named_modules()
        if isinstance(module, LoraLayer)
    }


@contextmanager
def plain(model: Any) -> Iterator[None]:
    """The base model: matrices out of use inside the block."""
    layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
    for layer in layers:
        layer.enable_adapters(False)
    try:
        yield
    finally:
        for layer in layers:
            layer.enable_adapters(True)


def best_low_rank(change: torch.Tensor, rank: int, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A and B of the given rank with scale · B · A nearest to a change of weights [out, in] (Eckart and Young 1936)."""
    left, values, right = torch.linalg.svd(change.float(), full_matrices=False)
    root = (values[:rank] / scale).sqrt()
    return root[:, None] * right[:rank], left[:, :rank] * root


def _joined(folder: Path, target: Path, sha256: str) -> Path:
    """The files of a folder (and folders in it) one after another by name. Joined once."""
    if target.is_file() and _sha256(target) == sha256:
        return target
    files = sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: path.name)
    if not files:
        raise FinetuneError(f"There are no parts of the weights in {folder}.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as whole:
        for path in files:
            with path.open("rb") as part:
                shutil.copyfileobj(part, whole, BLOCK)
    return target


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FinetuneError(f"{path} cannot be read: {error.strerror or error}.") from error
