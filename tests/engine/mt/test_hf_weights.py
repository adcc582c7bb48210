"""Loading models of transformers: what is refused, and in which words."""

# ruff: noqa: E402 - what needs torch comes behind the skip
from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from safetensors.torch import load_file, save_file

from engine.mt import hf_weights
from engine.mt.contract import TranslationError
from tests.engine.mt.tiny_models import save


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save("qwen3", tmp_path_factory.mktemp("qwen3"))


@pytest.fixture
def checkpoint(saved: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "checkpoint"))


def load(path: Path, cache: Path, **changes: Any) -> hf_weights.Loaded:
    options = {"dtype": "float32", "device": "cpu", "implementation": "sdpa", **changes}
    return hf_weights.load(path, cache=cache, **options)


def refused(path: Path, cache: Path) -> str:
    with pytest.raises(TranslationError) as caught:
        load(path, cache)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_a_folder_is_loaded_and_progress_told(checkpoint: Path, tmp_path: Path) -> None:
    told: list[float] = []
    loaded = load(
        checkpoint, tmp_path / "cache", dtype="bfloat16", progress=lambda fraction, text: told.append(fraction)
    )
    assert next(loaded.model.parameters()).dtype == torch.bfloat16
    assert not loaded.model.training
    assert (loaded.model_type, loaded.max_positions, loaded.end_ids) == ("qwen3", 4096, (1,))
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert not (tmp_path / "cache").exists()


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    assert "there is no config.json in it" in refused(tmp_path, tmp_path / "cache")


def test_a_missing_gguf_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in refused(tmp_path / "missing.gguf", tmp_path / "cache")


def test_a_file_that_is_no_gguf_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(b"not a model at all" * 100)
    assert refused(tmp_path / "bad.gguf", tmp_path / "cache").startswith("The model ")
    assert list((tmp_path / "cache").iterdir()) == []


def test_damaged_weights_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    assert "cannot be loaded" in refused(checkpoint, tmp_path)


def test_incomplete_weights_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    weights = load_file(checkpoint / "model.safetensors")
    del weights["model.layers.1.self_attn.q_proj.weight"]
    save_file(weights, checkpoint / "model.safetensors", {"format": "pt"})
    assert "layers.1.self_attn.q_proj.weight is not among its weights" in refused(checkpoint, tmp_path)


def test_missing_weights_are_refused(checkpoint: Path, tmp_path: Path) -> None:
    (checkpoint / "model.safetensors").unlink()
    assert "cannot be loaded" in refused(checkpoint, tmp_path)


def test_an_unknown_model_type_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps({**config, "model_type": "tomorrow"}))
    assert "tomorrow" in refused(checkpoint, tmp_path)


def test_a_converted_file_is_found_again(tmp_path: Path) -> None:
    gguf = tmp_path / "model.gguf"
    gguf.write_bytes(b"GGUF" + bytes(3_000_000))
    folder = tmp_path / "cache" / f"model-{hf_weights._fingerprint(gguf)}"
    folder.mkdir(parents=True)
    (folder / "config.json").touch()
    assert hf_weights.convert(gguf, tmp_path / "cache", lambda fraction, text: None) == folder


def test_what_a_killed_conversion_left_is_removed(tmp_path: Path) -> None:
    left, running = tmp_path / ".bad-old", tmp_path / ".bad-new"
    for folder in (left, running):
        folder.mkdir()
    os.utime(left, (0, 0))
    (tmp_path / "bad.gguf").write_bytes(b"not a model at all" * 100)
    refused(tmp_path / "bad.gguf", tmp_path)
    assert running.is_dir()
    assert not left.exists()


@pytest.mark.parametrize("at", [0, 10, -1])
def test_another_content_has_another_name(tmp_path: Path, at: int) -> None:
    first, second = tmp_path / "a.gguf", tmp_path / "b.gguf"
    data = bytearray(3_000_000)
    first.write_bytes(data)
    data[at] = 1
    second.write_bytes(data)
    assert hf_weights._fingerprint(first) != hf_weights._fingerprint(second)


def test_the_device_and_number_type_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert hf_weights.choose("auto", "auto") == ("cuda", "bfloat16")
    assert hf_weights.choose("cpu", "bfloat16") == ("cpu", "bfloat16")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert hf_weights.choose("auto", "auto") == ("cpu", "float32")
    with pytest.raises(TranslationError, match="no usable NVIDIA GPU"):
        hf_weights.choose("cuda:1", "auto")
