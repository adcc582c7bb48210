"""A whisper model of one's own: its folder is enough, and an incomplete one never leads to a download."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.asr.factory import create_recogniser
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


@pytest.mark.parametrize("absent", ["model.bin", "config.json", "tokenizer.json"])
def test_a_folder_that_is_no_model_is_one_sentence(tmp_path: Path, absent: str) -> None:
    for name in {"model.bin", "config.json", "tokenizer.json"} - {absent}:
        (tmp_path / name).write_text("{}")
    preset = load_preset("laptop", {"recogniser.model": str(tmp_path)})
    with pytest.raises(ModelError, match=f"has no {absent}\\.$"):
        create_recogniser(preset, "en", quiet)


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
