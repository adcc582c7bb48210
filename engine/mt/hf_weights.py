"""Models of transformers from a local folder, or from a GGUF file that is converted once into the user's cache."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging as hf_logging

from engine.mt.contract import Progress, TranslationError

logger = logging.getLogger("surtitle.mt")

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
_CONVERSION = 1  # part of the cache's folder names; raise it when converted files change
_SAMPLE_BYTES = 1 << 20
_ABANDONED_AFTER_S = 6 * 3600


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model on its device, ready to run, with its tokeniser. `end_ids`: tokens that end a text by its settings."""

    model: Any
    tokeniser: Any
    end_ids: tuple[int, ...]
    model_type: str
    max_positions: int


def choose(device: str, dtype: str, quantise: str = "none") -> tuple[str, str]:
    """Device and number type, "auto" resolved: the GPU where there is one; bfloat16 there, float32 on the CPU.

    Int8 weights are multiplied with bfloat16. Raises `TranslationError` for a GPU that is not there, and for another
    type beside int8 weights on the CPU.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device.split(":")[0] == "cuda" and not torch.cuda.is_available():
        raise TranslationError("There is no usable NVIDIA GPU for this translator; choose the device 'cpu'.")
    int8 = quantise == "int8" and device == "cpu"
    if dtype == "auto":
        dtype = "float32" if device == "cpu" and not int8 else "bfloat16"
    if dtype not in DTYPES:
        raise ValueError(f"dtype {dtype!r}")
    if int8 and dtype != "bfloat16":
        raise TranslationError(f"Int8 weights go with bfloat16, not {dtype}; set translator.dtype to auto.")
    return device, dtype


def load(
    path: Path, *, dtype: str, device: str, implementation: str, cache: Path, progress: Progress | None = None
) -> Loaded:
    """Load `path`, a folder with config.json and safetensors, or a GGUF file (converted into `cache`).

    `implementation`: the attention implementation. Raises `TranslationError` for anything that cannot be loaded.
    """
    report = progress or (lambda fraction, text: None)
    folder, share = path, 0.0
    if path.suffix.lower() == ".gguf":
        share = 0.8
        folder = convert(path, cache, lambda fraction, text: report(share * fraction, text))
    elif not (path / "config.json").is_file():
        raise TranslationError(f"{path} holds no model: there is no config.json in it and it is no GGUF file.")
    report(share, f"Loading {path.name}")
    with _quiet(), _one_sentence(path):
        tokeniser = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model, found = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=DTYPES[dtype],
            attn_implementation=implementation,
            local_files_only=True,
            output_loading_info=True,
        )
        if absent := sorted(found["missing_keys"]):
            # transformers would go on with random numbers
            raise TranslationError(f"The model {path} is incomplete: {absent[0]} is not among its weights.")
        model = model.to(device).eval()
    report(1.0, f"Loaded {path.name}")
    text = model.config.get_text_config()
    return Loaded(model, tokeniser, _end_ids(model), str(text.model_type), int(text.max_position_embeddings))


def convert(gguf: Path, cache: Path, progress: Progress) -> Path:
    """The folder with the bfloat16 weights and the tokeniser of a GGUF file, made on first use.

    It takes a minute for a small model: weights are unpacked, and the merges of some tokenisers are found again
    from their vocabulary. Raises `TranslationError`.
    """
    folder = cache / f"{gguf.stem}-{_fingerprint(gguf)}"
    if (folder / "config.json").is_file():
        return folder
    with _one_sentence(gguf):
        cache.mkdir(parents=True, exist_ok=True)
        _forget_interrupted(cache, gguf.stem)
        part = Path(tempfile.mkdtemp(prefix=f".{gguf.stem}-", dir=cache))
    try:
        with _quiet(), _one_sentence(gguf):
            _convert(gguf, part, progress)
            try:
                part.rename(folder)
            except OSError:
                if not (folder / "config.json").is_file():  # else another process was faster
                    raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder


def _convert(gguf: Path, folder: Path, progress: Progress) -> None:
    from transformers import GgufConfig

    progress(0.0, f"Converting {gguf.name} (once): weights")
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
        local_files_only=True,
    )
    progress(0.6, f"Converting {gguf.name} (once): writing")
    model.save_pretrained(folder)
    progress(0.7, f"Converting {gguf.name} (once): tokeniser")
    AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, local_files_only=True).save_pretrained(folder)
    progress(1.0, f"Converted {gguf.name}")


def _forget_interrupted(cache: Path, stem: str) -> None:
    """Remove what conversions left that were killed; one that still runs is younger."""
    for folder in cache.glob(f".{stem}-*"):
        if time.time() - folder.stat().st_mtime > _ABANDONED_AFTER_S:
            shutil.rmtree(folder, ignore_errors=True)


def _fingerprint(file: Path) -> str:
    """Names the content of a weights file without reading gigabytes: its size, its first and its last MiB."""
    try:
        with file.open("rb") as data:
            size = data.seek(0, os.SEEK_END)
            digest = hashlib.sha256(json.dumps([_CONVERSION, size]).encode())
            for start in (0, max(0, size - _SAMPLE_BYTES)):
                data.seek(start)
                digest.update(data.read(_SAMPLE_BYTES))
    except OSError as error:
        raise TranslationError(f"The model file {file} cannot be read: {error.strerror or error}.") from error
    return digest.hexdigest()[:16]


def _end_ids(model: Any) -> tuple[int, ...]:
    ids: set[int] = set()
    for settings in (model.config.get_text_config(), model.generation_config):
        given = getattr(settings, "eos_token_id", None)
        ids |= set(given if isinstance(given, (list, tuple)) else [given]) - {None}
    return tuple(sorted(ids))


@contextmanager
def _one_sentence(path: Path) -> Iterator[None]:
    """Failures of loading as `TranslationError`; the traceback goes to the log."""
    try:
        yield
    except TranslationError:
        raise
    except (OSError, RuntimeError, ValueError, KeyError, ImportError, MemoryError, SafetensorError) as error:
        logger.warning("loading %s with transformers %s failed", path, transformers.__version__, exc_info=True)
        reason = str(error).strip().split("\n")[0].rstrip(".") or type(error).__name__
        raise TranslationError(f"The model {path} cannot be loaded: {reason}.") from error


@contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars on stderr: progress is reported to the caller."""
    shown = hf_logging.is_progress_bar_enabled()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            hf_logging.enable_progress_bar()
