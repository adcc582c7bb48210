"""The recogniser's benchmark: what it prints, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import soundfile

from engine.__main__ import main
from engine.presets import resources


@pytest.mark.models
def test_it_measures_a_recording_with_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    samples, rate = soundfile.read(resources() / "recordings" / "two-voices.flac", frames=12 * 16_000)
    soundfile.write(tmp_path / "short.wav", samples, rate)
    (tmp_path / "short.txt").write_text(
        "And so, my fellow Americans: ask not what your country can do for you, ask what you can do for your country."
    )
    assert main(["benchmark", "recogniser", str(tmp_path / "short.wav"), "--json", str(tmp_path / "out.json")]) == 0
    (name, figures), *others = json.loads((tmp_path / "out.json").read_text()).items()
    assert others == []
    assert name in capsys.readouterr().out
    assert 8.0 < figures["speech s"] < 12.0
    assert figures["CPU s per audio s"] > figures["of it audio and gate"] > 0
    assert 0.0 < figures["delay mean s"] <= figures["delay p95 s"] < 5.0
    assert 0.0 <= figures["word errors %"] < 30.0


@pytest.mark.parametrize(
    "words", [["missing.wav"], ["--preset", "nothing"], ["--chunk-ms", "many"], ["--chunk-ms", "7"]]
)
def test_bad_input_is_one_sentence(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["benchmark", "recogniser", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.strip().splitlines()) == 1
