"""The packaged GGUF file made faster once, in the user's cache: an adapter merged, and only tokens of Latin script.

What is merged is dequantised, changed and kept as Q8_0 (8.5 bits a weight, more than the packaged types have). Tokens
that Latin script is not written with leave the vocabulary with their embeddings, which are the output layer too: the
largest matrix of a small model, read for every token. The text of the others is divided into tokens as before; a
character without a token is spelt in bytes, as the model has learnt it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import regex
from numpy.typing import NDArray

from engine.mt.contract import Progress, TranslationError
from engine.mt.latin import latin_tokens

logger = logging.getLogger("surtitle.mt")

_VERSION = 1  # part of the file's name; raise it when prepared files change
_PER_TOKEN = ("tokenizer.ggml.tokens", "tokenizer.ggml.scores", "tokenizer.ggml.token_type")
_TOKEN_ID = regex.compile(r"tokenizer\.ggml\.\w+_token_id")
_EMBEDDING = "token_embd.weight"
_NORMAL = 1  # LLAMA_TOKEN_TYPE_NORMAL; byte, control and added tokens are kept whatever they spell
_MERGED = gguf.GGMLQuantizationType.Q8_0
Lora = dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]


def prepare(base: Path, base_sha256: str, adapter: Path | None, cache: Path, progress: Progress) -> Path:
    """The prepared file of `base` and `adapter` (GGUF both), made on first use; under a second afterwards.

    Raises `TranslationError` when a file is not what it should be, and when the disk is full.
    """
    identity = [_VERSION, base_sha256, None if adapter is None else hashlib.sha256(adapter.read_bytes()).hexdigest()]
    folder = cache / "prepared"
    target = folder / f"{base.stem}-{hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]}.gguf"
    note = target.with_suffix(".checked")
    if _noted(target, note):
        return target
    with _one_sentence(base, folder):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{target.stem}-")
        os.close(handle)
        unfinished = Path(name)
        try:
            progress(0.0, f"Preparing {base.name} (once)")
            _write(base, adapter, unfinished, lambda fraction: progress(fraction, f"Preparing {base.name} (once)"))
            unfinished.replace(target)
            note.write_text(json.dumps(_state(target)), encoding="utf-8")
        finally:
            unfinished.unlink(missing_ok=True)
    return target


class _Reader(gguf.GGUFReader):
    """The reader over a plain array: each of its million slices of a memory map would cost several times as much."""

    @property
    def data(self) -> NDArray[np.uint8]:
        return self._plain

    @data.setter
    def data(self, mapped: NDArray[np.uint8]) -> None:
        self._plain = mapped.view(np.ndarray)


def _write(base: Path, adapter: Path | None, target: Path, tell: Callable[[float], None]) -> None:
    reader = _Reader(base)
    lora = _read_adapter(adapter) if adapter else {}
    kept = _kept(reader)
    writer = gguf.GGUFWriter(target, reader.fields["general.architecture"].contents())
    _copy_fields(reader, writer, kept)
    total = sum(tensor.n_bytes for tensor in reader.tensors)
    done = 0
    for tensor in reader.tensors:
        data, kind = _changed(tensor, lora, kept)
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
        done += tensor.n_bytes
        tell(0.5 + 0.4 * done / total)
    if lora:
        raise TranslationError(f"The adapter file {adapter} does not fit the model: it has no {sorted(lora)[0]}.")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    tell(1.0)


def _kept(reader: Any) -> NDArray[np.int64]:
    """Ids of the tokens that stay, rising."""
    spelt = reader.fields["tokenizer.ggml.tokens"].contents()
    kinds = reader.fields["tokenizer.ggml.token_type"].contents()
    latin = set(latin_tokens([token.replace("▁", " ").encode() for token in spelt]))
    return np.array([token for token, kind in enumerate(kinds) if kind != _NORMAL or token in latin])


def _copy_fields(reader: Any, writer: Any, kept: NDArray[np.int64]) -> None:
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value, kind = field.contents(), field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        if name in _PER_TOKEN:
            value = [value[token] for token in kept]
        elif _TOKEN_ID.fullmatch(name):
            value = int(np.searchsorted(kept, value))
        elif name.endswith(".vocab_size"):
            value = len(kept)
        writer.add_key_value(name, value, kind, sub_type=inner)


def _changed(tensor: Any, lora: Lora, kept: NDArray[np.int64]) -> tuple[NDArray[Any], Any]:
    """A tensor's bytes as they are, its kept rows, or the sum with its pair of the adapter (which is taken)."""
    if tensor.name == _EMBEDDING:
        return np.ascontiguousarray(tensor.data[kept]), tensor.tensor_type
    pair = lora.pop(tensor.name, None)
    if pair is None:
        return tensor.data, tensor.tensor_type
    weight = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    down, up = pair
    if weight.shape != (up.shape[0], down.shape[1]):
        raise ValueError(f"the adapter's {tensor.name} has another shape")
    return gguf.quants.quantize(weight + up @ down, _MERGED), _MERGED


def _read_adapter(path: Path) -> Lora:
    """Tensor name: A [rank, in] and B [out, rank] times alpha / rank."""
    reader = _Reader(path)
    alpha = float(reader.fields["adapter.lora.alpha"].contents())
    found = {tensor.name: gguf.quants.dequantize(tensor.data, tensor.tensor_type) for tensor in reader.tensors}
    pairs: Lora = {}
    for name in (name.removesuffix(".lora_a") for name in found if name.endswith(".lora_a")):
        down, up = found[f"{name}.lora_a"], found[f"{name}.lora_b"]
        pairs[name] = down, up * (alpha / down.shape[0])
    if 2 * len(pairs) != len(found):
        raise ValueError(f"{path.name} has a matrix without its other half")
    return pairs


@contextmanager
def _one_sentence(base: Path, folder: Path) -> Iterator[None]:
    """Failures as `TranslationError`; the traceback goes to the log."""
    try:
        yield
    except OSError as error:
        what = error.strerror or str(error)
        raise TranslationError(f"{base.name} cannot be prepared in {folder}: {what}.") from error
    except (ValueError, KeyError, IndexError, NotImplementedError) as error:
        logger.warning("preparing %s failed", base, exc_info=True)
        raise TranslationError(f"{base.name} cannot be prepared ({error}): reinstall the model or adapter.") from error


def _state(path: Path) -> dict[str, int]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _noted(path: Path, note: Path) -> bool:
    """Whether this very file was finished here before."""
    try:
        return bool(json.loads(note.read_text(encoding="utf-8")) == _state(path))
    except (OSError, ValueError):
        return False
