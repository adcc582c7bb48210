"""Random adapters in both file formats, as `resources/adapters/README.md` describes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.packaged import PACKAGED

GEMMA_SHA256 = PACKAGED["gemma-3-270m"].files[0].sha256
TARGETS = ("de", "fr", "es", "it")
# transformers' module, the name of llama.cpp, and (out, in) of Gemma 3 270M
MODULES = {
    "self_attn.q_proj": ("attn_q", 1024, 640),
    "self_attn.k_proj": ("attn_k", 256, 640),
    "self_attn.v_proj": ("attn_v", 256, 640),
    "self_attn.o_proj": ("attn_output", 640, 1024),
    "mlp.gate_proj": ("ffn_gate", 2048, 640),
    "mlp.up_proj": ("ffn_up", 2048, 640),
    "mlp.down_proj": ("ffn_down", 640, 2048),
}
LAYERS = 18
Matrices = dict[tuple[int, str], tuple[NDArray[np.float16], NDArray[np.float16]]]


def random_matrices(rank: int, strength: float, seed: int = 0) -> Matrices:
    """A [rank, in] and B [out, rank] of every module; the change of an output is about `strength` of its size 1."""
    random = np.random.default_rng(seed)
    made: Matrices = {}
    for layer in range(LAYERS):
        for module, (_, out, into) in MODULES.items():
            down = random.standard_normal((rank, into)) / np.sqrt(into)
            up = random.standard_normal((out, rank)) * strength / np.sqrt(rank)
            made[layer, module] = down.astype(np.float16), up.astype(np.float16)
    return made


def write_adapter(
    folder: Path,
    *,
    rank: int = 8,
    alpha: float = 16.0,
    strength: float = 0.02,
    seed: int = 0,
    layout: str = "talks-1",
    base_sha256: str = GEMMA_SHA256,
    languages: Sequence[str] = TARGETS,
    name: str = "random",
) -> Path:
    """A whole adapter for the packaged Gemma; returns its folder. Needs `gguf` and `safetensors`."""
    folder.mkdir(parents=True, exist_ok=True)
    matrices = random_matrices(rank, strength, seed)
    write_gguf(folder / "adapter.gguf", matrices, alpha)
    _write_safetensors(folder / "adapter.safetensors", matrices)
    describe(folder, rank, alpha, layout, base_sha256, languages, name)
    return folder


def describe(
    folder: Path,
    rank: int = 8,
    alpha: float = 16.0,
    layout: str = "talks-1",
    base_sha256: str = GEMMA_SHA256,
    languages: Sequence[str] = TARGETS,
    name: str = "random",
) -> None:
    """Write `adapter.toml` for the two files as they lie there."""
    lines = [
        f'name = "{name}"',
        'base = "gemma-3-270m-q4_k_m.gguf"',
        f'base_sha256 = "{base_sha256}"',
        f"rank = {rank}",
        f"alpha = {alpha}",
        f'layout = "{layout}"',
        'source = "en"',
        f"languages = {list(languages)!r}",
        *(f'{kind}_sha256 = "{_sha256(folder / f"adapter.{kind}")}"' for kind in ("gguf", "safetensors")),
        'training = "none: random numbers"',
    ]
    (folder / "adapter.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes() if path.is_file() else b"").hexdigest()


def write_gguf(path: Path, matrices: Matrices, alpha: float, architecture: str = "gemma3") -> None:
    from gguf import GGUFWriter

    writer: Any = GGUFWriter(path, architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", alpha)
    for (layer, module), (down, up) in matrices.items():
        name = f"blk.{layer}.{MODULES[module][0]}.weight"
        writer.add_tensor(f"{name}.lora_a", down)
        writer.add_tensor(f"{name}.lora_b", up)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_safetensors(path: Path, matrices: Matrices) -> None:
    from safetensors.numpy import save_file

    tensors = {}
    for (layer, module), (down, up) in matrices.items():
        name = f"base_model.model.model.layers.{layer}.{module}"
        tensors[f"{name}.lora_A.weight"] = down
        tensors[f"{name}.lora_B.weight"] = up
    save_file(tensors, path)
