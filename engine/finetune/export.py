"""An adapter's files: for llama.cpp, for transformers, and what they are for. Both hold the same float16 numbers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from engine.files import write_atomically
from engine.finetune.rows import SOURCE, TARGETS, FinetuneError
from engine.finetune.weights import Base, matrices

GGUF, SAFETENSORS, NOTE = "adapter.gguf", "adapter.safetensors", "adapter.toml"
_PEFT = "base_model.model."
# A layer's linear modules, as transformers and as llama.cpp (LLM_TENSOR_NAMES) name them.
LAYERS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
MODULES = tuple(name.split(".")[1] for name in LAYERS)


@dataclass(frozen=True, slots=True)
class Note:
    """What stands in `adapter.toml` beside checksums and shape."""

    name: str
    layout: str
    training: str
    licence: str


def export(folder: Path, model: Any, base: Base, alpha: float, note: Note) -> None:
    """Write the three files of an adapter; each is whole or absent, the note comes last.

    Raises `FinetuneError` for numbers that float16 cannot hold.
    """
    folder.mkdir(parents=True, exist_ok=True)
    numbers = {name: (_half(a, name), _half(b, name)) for name, (a, b) in matrices(model).items()}
    rank = next(iter(numbers.values()))[0].shape[0]
    named = {
        f"{_PEFT}{name}.lora_{which}.weight": values
        for name, pair in numbers.items()
        for which, values in zip("AB", pair, strict=True)
    }
    with _moved_into(folder / SAFETENSORS) as path:
        save_file(named, path, metadata={"format": "pt"})  # more keys would stand in random order
    with _moved_into(folder / GGUF) as path:
        _write_gguf(path, numbers, model.config.get_text_config().model_type, alpha, note)
    write_atomically(folder / NOTE, _toml(folder, base, rank, alpha, note))


def read_safetensors(path: Path) -> dict[str, NDArray[np.float16]]:
    """Matrices by the module's name and "A" or "B", for example `model.layers.0.self_attn.q_proj A`."""
    try:
        tensors = load_file(path)
    except (OSError, ValueError, RuntimeError) as error:
        raise FinetuneError(f"{path} cannot be read: {error}.") from error
    return {_module(name): values for name, values in tensors.items()}


def read_gguf(path: Path) -> tuple[dict[str, NDArray[np.float16]], dict[str, Any]]:
    """Matrices as in `read_safetensors`, and the file's metadata."""
    reader = gguf.GGUFReader(path)
    spelled = {theirs: ours for ours, theirs in LAYERS.items()}
    tensors = {}
    for tensor in reader.tensors:
        _, layer, kind, _, which = tensor.name.split(".")
        tensors[f"model.layers.{layer}.{spelled[kind]} {which[-1].upper()}"] = np.array(tensor.data)
    return tensors, {key: field.contents() for key, field in reader.fields.items()}


def put(model: Any, numbers: dict[str, NDArray[np.float16]]) -> None:
    """Set the matrices of a model to those of a file. Raises `FinetuneError` where names or shapes differ."""
    own = {
        f"{name} {which}": values
        for name, pair in matrices(model).items()
        for which, values in zip("AB", pair, strict=True)
    }
    if own.keys() != numbers.keys() or any(own[name].shape != numbers[name].shape for name in own):
        raise FinetuneError("The adapter has other matrices than the model.")
    with torch.no_grad():
        for name, values in own.items():
            values.copy_(torch.from_numpy(numbers[name].astype(np.float32)))


def _module(name: str) -> str:
    module, which, _ = name.removeprefix(_PEFT).rsplit(".", 2)
    return f"{module} {which[-1]}"


def _half(values: torch.Tensor, name: str) -> NDArray[np.float16]:
    half = values.detach().float().cpu().numpy().astype(np.float16)
    if not np.isfinite(half).all():
        raise FinetuneError(f"A matrix of {name} has numbers that float16 cannot hold.")
    return half


def _write_gguf(
    path: Path,
    numbers: dict[str, tuple[NDArray[np.float16], NDArray[np.float16]]],
    model_type: str,
    alpha: float,
    note: Note,
) -> None:
    writer = gguf.GGUFWriter(path, model_type.removesuffix("_text"))
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(alpha))
    writer.add_name(note.name)
    writer.add_license(note.licence)
    for name, (a, b) in numbers.items():
        layer, kind = name.removeprefix("model.layers.").split(".", 1)
        for which, values in (("a", a), ("b", b)):
            writer.add_tensor(f"blk.{layer}.{LAYERS[kind]}.weight.lora_{which}", np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@contextmanager
def _moved_into(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place when the block ends well."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.chmod(0o644)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _toml(folder: Path, base: Base, rank: int, alpha: float, note: Note) -> str:
    values: dict[str, Any] = {
        "name": note.name,
        "base": base.name,
        "base_sha256": base.sha256,
        "rank": rank,
        "alpha": float(alpha),
        "layout": note.layout,
        "source": SOURCE,
        "languages": list(TARGETS),
        "gguf_sha256": _digest(folder / GGUF),
        "safetensors_sha256": _digest(folder / SAFETENSORS),
        "training": note.training,
        "licence": note.licence,
    }
    # JSON's strings, numbers and lists of strings are TOML's as well.
    return "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
