"""`surtitle benchmark asr` with models that answer at once, and its bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.__main__ import main
from engine.asr.contract import SAMPLE_RATE
from engine.asr.qwen import QwenDecoder
from engine.benchmarks import asr
from engine.benchmarks.asr_subject import WORDS_PER_S, Session, Speech, Subject, _session
from engine.benchmarks.speech_checkpoints import MARKS, SHAPES, config, sentence, vocabulary_of, write
from engine.presets import RecogniserPreset

VALUES = RecogniserPreset(kind="qwen", model="none", chunk_ms=850, max_tail_s=12.0)


class Instant:
    """`QwenModels` that notes what it was asked for."""

    class_s = 0.08

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.heads: list[str] = []
        self.aligned: list[int] = []

    def transcribe(self, audio: Any, context: str, head: str, most: int, cancel: Any, exactly: bool) -> str:
        assert exactly
        self.tokens.append(most)
        self.heads.append(head)
        return "nonsense"

    def align(self, audio: Any, spoken: Any, cancel: Any) -> list[int]:
        self.aligned.append(len(spoken))
        return [0] * (2 * len(spoken))


def subject(models: Instant) -> Subject:
    def start(number: int, marks: bool) -> Session:
        speech = Speech(models, sentence(200, number, marks))  # type: ignore[arg-type]
        decoder = QwenDecoder(speech, "en", "", forced_tokens_per_s=3.4)  # type: ignore[arg-type]
        return _session(decoder, VALUES, speech)

    return Subject(
        "instant",
        VALUES,
        start,
        lambda seconds: np.full(round(seconds * SAMPLE_RATE), 0.1, np.float32),
        lambda: None,
        0,
    )


def test_the_made_up_speech_is_committed_as_a_real_one_would_be() -> None:
    models = Instant()
    figures = asr.growth(subject(models), 60)
    assert figures["longest_window_s"] <= 12 + 0.85
    assert sum(costs["updates"] for costs in figures["by_window"].values()) == len(models.tokens)
    assert len(figures["by_age"]) == 5
    assert max(models.aligned) <= 13 * WORDS_PER_S
    tail_s = sorted(models.tokens)[len(models.tokens) // 2] / 3.4
    assert 0.5 < tail_s < 4  # what is not committed yet, not the whole window
    assert any(len(head.split()) > 15 for head in models.heads)


def test_sessions_at_real_pace() -> None:
    figures = asr.sessions(subject(Instant()), 3, 3.0)
    assert figures["sessions"] == 3
    assert figures["updates"] >= 9
    assert 0.8 < figures["first_word_s"] < 3
    assert 0 <= figures["real_time_factor"] < 1


@pytest.mark.models
def test_whisper_is_measured_on_a_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "asr.json"
    words = [
        "benchmark",
        "asr",
        "--sessions",
        "1,2",
        "--seconds",
        "3",
        "--growth-minutes",
        "0.2",
        "--json",
        str(target),
    ]
    assert main(words) == 0
    figures = json.loads(target.read_text())
    assert [one["sessions"] for one in figures["sessions"]] == [1, 2]
    assert figures["growth"]["by_window"]
    assert figures["random_weights"] is False
    assert "real-time factor" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--sessions", "none"], "invalid literal"),
        (["--sessions", "0"], "must be greater than 0"),
        (["--set", "recogniser"], "'recogniser' is not KEY=VALUE"),
        (["--preset", "nowhere"], "There is no preset 'nowhere'"),
        (["/nowhere.wav"], "nowhere.wav"),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "asr", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_random_weights_without_vllm_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "vllm", None)
    monkeypatch.setitem(__import__("sys").modules, "vllm.platforms", None)
    assert main(["benchmark", "asr", "--random-weights", "qwen3-asr-tiny"]) == 2
    assert "install surtitle[gpu]" in capsys.readouterr().err


def test_marks_have_the_published_numbers() -> None:
    shape = SHAPES["qwen3-asr-1.7b"]
    published = {
        "<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645, "<|audio_start|>": 151669,
        "<|audio_end|>": 151670, "<|audio_pad|>": 151676, "<asr_text>": 151704, "<timestamp>": 151705,
    }  # fmt: skip
    assert {mark: shape.number(mark) for mark in published} == published
    assert len(set(MARKS)) == len(MARKS)


def test_a_vocabulary_has_its_size_and_every_merge_leads_to_a_token() -> None:
    for size in (800, 30_000):
        vocabulary, merges = vocabulary_of(size)
        assert sorted(vocabulary.values()) == list(range(size))
        assert all({a, b, a + b} <= vocabulary.keys() for a, b in merges)


def test_a_folder_without_weights_holds_what_loading_needs(tmp_path: Path) -> None:
    write("qwen3-forced-aligner-tiny", tmp_path)
    kept = json.loads((tmp_path / "config.json").read_text())
    assert kept == config(SHAPES["qwen3-forced-aligner-tiny"])
    assert kept["timestamp_segment_time"] == 80
    assert {path.name for path in tmp_path.iterdir()} >= {"tokenizer_config.json", "preprocessor_config.json"}
