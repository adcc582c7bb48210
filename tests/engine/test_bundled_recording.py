"""The bundled recording: its form, its transcript, and how well the built-in recogniser hears it."""

from __future__ import annotations

import re

import jiwer
import numpy as np
import pytest
import soundfile

from engine.models import resolve
from engine.presets import resources

FOLDER = resources() / "recordings"
NAME = "two-voices"


def words(text: str) -> str:
    """Text as a word error rate compares it: no case, no punctuation, one way to write a title."""
    return " ".join(re.sub(r"[^a-z']", " ", text.lower().replace("mr.", "mister")).split())


def test_recording_is_what_its_readme_says() -> None:
    info = soundfile.info(FOLDER / f"{NAME}.flac")
    assert (info.samplerate, info.channels, info.subtype) == (16000, 1, "PCM_16")
    assert 40 <= info.duration <= 90
    assert (FOLDER / f"{NAME}.flac").stat().st_size < 2_000_000
    audio, _ = soundfile.read(FOLDER / f"{NAME}.flac")
    assert np.abs(audio).max() < 1.0
    lines = (FOLDER / f"{NAME}.txt").read_text(encoding="utf-8").splitlines()
    assert all(line.endswith((".", "?", "!")) for line in lines)
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert f"{info.duration:.1f} s of English" in readme
    assert f"{len(words(' '.join(lines)).split())} in all" in readme


@pytest.mark.models
def test_built_in_recogniser_mishears_less_than_one_word_in_ten() -> None:
    from faster_whisper import WhisperModel

    model = WhisperModel(str(resolve("whisper-tiny.en")), device="cpu", compute_type="int8", cpu_threads=1)
    segments, _ = model.transcribe(
        str(FOLDER / f"{NAME}.flac"), language="en", beam_size=1, condition_on_previous_text=False
    )
    heard = words(" ".join(segment.text for segment in segments))
    said = words((FOLDER / f"{NAME}.txt").read_text(encoding="utf-8"))
    rate = jiwer.wer(said, heard)
    print(f"word error rate on {NAME}.flac: {100 * rate:.1f} %")
    assert rate < 0.10
