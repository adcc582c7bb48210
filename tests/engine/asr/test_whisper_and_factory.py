"""One sentence for a recogniser that cannot be made, and whisper's words with their times."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from engine.asr.contract import SAMPLE_RATE
from engine.asr.factory import create_recogniser
from engine.asr.whisper import WhisperDecoder
from engine.models import ModelError, resolve
from engine.presets import load_preset
from tests.engine.asr.helpers import text


def quiet(fraction: float, said: str) -> None:
    pass


def sentence(**overrides: object) -> str:
    preset = load_preset("laptop", {f"recogniser.{key}": value for key, value in overrides.items()})
    with pytest.raises(ModelError) as caught:
        create_recogniser(preset, "en", quiet)
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_a_folder_without_a_model_is_one_sentence(tmp_path: Path) -> None:
    assert f"{tmp_path} holds no whisper model that can be loaded" in sentence(model=str(tmp_path))


def test_damaged_weights_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"nonsense" * 100)
    (tmp_path / "config.json").write_text("{}")
    assert "holds no whisper model that can be loaded" in sentence(model=str(tmp_path))


def test_no_such_model_is_one_sentence() -> None:
    assert "There is no model at '/nowhere'" in sentence(model="/nowhere")


def test_a_missing_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "engine.asr.whisper", raising=False)
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    assert "pip install 'surtitle[laptop]'" in sentence()


@pytest.mark.models
def test_words_have_times_inside_the_window() -> None:
    import soundfile

    from engine.presets import resources

    decoder = WhisperDecoder(resolve("whisper-tiny.en"))
    samples, _ = soundfile.read(
        resources() / "recordings" / "two-voices.flac", dtype="float32", frames=11 * SAMPLE_RATE
    )
    heard = decoder.decode(samples, ())
    assert "ask not what your country can do for you" in text(heard)
    edges = [edge for word in heard for edge in (word.start_s, word.end_s)]
    assert edges == sorted(edges)
    assert 0.0 <= edges[0] <= edges[-1] <= 11.0
    assert all(word.text == word.text.strip() and word.text for word in heard)
    assert decoder.decode(np.zeros(SAMPLE_RATE, np.float32), ()) == []
    assert len(decoder.decode(np.tile(samples, 3)[: 29 * SAMPLE_RATE], ())) > 20
