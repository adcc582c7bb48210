"""From a preset to a recogniser: a model of one's own by its folder, and one sentence for what cannot be loaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.asr.factory import WHISPER_FILES, create_recogniser
from engine.models import ModelError, resolve
from engine.presets import load_preset


def quiet(fraction: float, sentence: str) -> None:
    pass


@pytest.mark.models
def test_a_model_of_ones_own_is_taken_by_its_folder() -> None:
    told: list[tuple[float, str]] = []
    preset = load_preset("laptop", {"recogniser.model": str(resolve("whisper-tiny.en"))})
    create_recogniser(preset, "en", lambda fraction, sentence: told.append((fraction, sentence)))
    assert told[-1][0] == 1.0
    assert [fraction for fraction, _ in told] == sorted(fraction for fraction, _ in told)


@pytest.mark.models
def test_progress_never_goes_back_when_weights_are_checked_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    told: list[float] = []
    create_recogniser(load_preset("laptop"), "en", lambda fraction, sentence: told.append(fraction))
    assert len(told) > 4
    assert told == sorted(told)


def refused(model: str, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        create_recogniser(load_preset("laptop", {"recogniser.model": model}), "en", quiet)


@pytest.mark.parametrize("absent", WHISPER_FILES)
def test_an_incomplete_folder_is_one_sentence_and_no_download(tmp_path: Path, absent: str) -> None:
    for name in {*WHISPER_FILES} - {absent}:
        (tmp_path / name).write_text("{}")
    refused(str(tmp_path), rf"^{tmp_path} holds no whisper model that can be loaded: it has no {absent}\.$")


def test_damaged_weights_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "model.bin").write_bytes(b"nonsense" * 100)
    refused(str(tmp_path), rf"^{tmp_path} holds no whisper model that can be loaded: (?!it has no)[^\n]+\.$")


def test_no_such_model_is_one_sentence() -> None:
    refused("/nowhere", r"^There is no model at '/nowhere'; [^\n]*: whisper-tiny\.en, whisper-base\.$")


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "engine.asr.whisper", raising=False)
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    refused("whisper-tiny.en", r"pip install 'surtitle\[laptop\]'\.$")


@pytest.mark.models
def test_a_model_for_english_is_not_asked_for_another_language() -> None:
    with pytest.raises(ModelError, match=r"^whisper-tiny\.en knows English only and cannot hear 'de'"):
        create_recogniser(load_preset("laptop"), "de", quiet)


@pytest.mark.parametrize(
    ("overrides", "language", "sentence"),
    [
        ({}, "en", r"names no forced aligner for whisper-tiny\.en: set recogniser\.aligner\.$"),
        ({"recogniser.aligner": "/nowhere"}, "cs", r"^The forced aligner has no times for Czech; it knows"),
        ({"recogniser.aligner": "/nowhere", "recogniser.model": "/nowhere"}, "en", r"^There is no model at '/nowhere'"),
    ],
)
def test_a_qwen_preset_that_cannot_be_loaded_is_one_sentence(
    overrides: dict[str, str], language: str, sentence: str
) -> None:
    preset = load_preset("laptop", {"recogniser.kind": "qwen", **overrides})
    with pytest.raises(ModelError, match=sentence):
        create_recogniser(preset, language, quiet)
