"""`surtitle run` in the terminal, on the bundled recording with the real models."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import soundfile

from app.export.validate import validate_jsonl, validate_srt, validate_vtt
from engine.benchmarks.lag import session_figures
from engine.schemas import CaptionLine, EndLine, read_log
from tests.e2e.conftest import word_error_rate
from tests.e2e.machine import wait_for

pytestmark = pytest.mark.e2e
Start = Callable[..., "subprocess.Popen[bytes]"]


def surtitle(*words: object, env: dict[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli", *map(str, words)]
    root = Path(__file__).parents[2]
    environment = {**os.environ, **env, "PYTHONPATH": str(root)}
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)


def captions(log: Path) -> list[CaptionLine]:
    return [line for line in read_log(log) if isinstance(line, CaptionLine)]


def final_source(log: Path) -> str:
    return " ".join(caption.source_stable for caption in captions(log) if caption.final)


@pytest.fixture(scope="module")
def real_pace(tmp_path_factory: pytest.TempPathFactory, recording: Path) -> Path:
    """One session at real pace, exported in every format."""
    return session(tmp_path_factory.mktemp("real"), recording)


@pytest.fixture(scope="module")
def every_update(tmp_path_factory: pytest.TempPathFactory, recording: Path) -> Path:
    """One session in which no update is skipped, however slow the machine: what it shows does not hang on the load."""
    return session(tmp_path_factory.mktemp("fast"), recording, "--fast")


def session(folder: Path, recording: Path, *options: str) -> Path:
    home = {f"XDG_{name}_HOME": str(folder / name) for name in ("DATA", "CONFIG", "STATE")}
    exports = [folder / f"demo.{suffix}" for suffix in ("txt", "srt", "vtt", "jsonl")]
    arguments = ["run", recording, "--to", "de", "--preset", "laptop", "--headless", *options]
    done = surtitle(*arguments, "--export", *exports, "--log", folder / "log.jsonl", env=home, cwd=folder)
    assert done.returncode == 0, done.stderr
    (folder / "stdout").write_text(done.stdout, encoding="utf-8")
    return folder


def test_the_words_are_recognised(real_pace: Path, spoken: str) -> None:
    assert word_error_rate(spoken, final_source(real_pace / "log.jsonl")) < 0.10


def test_stable_text_is_never_taken_back(real_pace: Path) -> None:
    assert session_figures(captions(real_pace / "log.jsonl"), "de").retractions == 0


def test_text_becomes_stable_long_before_the_end_of_its_utterance(every_update: Path) -> None:
    figures = session_figures(captions(every_update / "log.jsonl"), "de")
    assert figures.retractions == 0
    assert figures.stable_before_final is not None
    assert figures.stable_before_final >= 0.6
    assert figures.utterances_with_held is not None
    assert figures.utterances_with_held >= 0.8
    assert figures.releases_on_commit >= 1


def test_the_terminal_shows_the_final_text(real_pace: Path) -> None:
    shown = (real_pace / "stdout").read_text(encoding="utf-8")
    for caption in captions(real_pace / "log.jsonl"):
        if caption.final:
            assert caption.stable in shown


def test_every_export_is_valid_and_holds_the_text(real_pace: Path) -> None:
    text = {
        suffix: (real_pace / f"demo.{suffix}").read_text(encoding="utf-8") for suffix in ("txt", "srt", "vtt", "jsonl")
    }
    validate_srt(text["srt"])
    validate_vtt(text["vtt"])
    validate_jsonl(text["jsonl"])
    rows = [json.loads(line) for line in text["jsonl"].splitlines()]
    finals = [caption.stable for caption in captions(real_pace / "log.jsonl") if caption.final and caption.stable]
    assert [row["target"] for row in rows] == finals
    assert all(final in text["txt"] for final in finals)


def test_silence_gives_no_text(tmp_path: Path, home: dict[str, str]) -> None:
    silence = tmp_path / "silence.wav"
    soundfile.write(silence, [0.0] * 16_000 * 60, 16_000, subtype="PCM_16")
    log = tmp_path / "log.jsonl"
    done = surtitle("run", silence, "--to", "de", "--headless", "--fast", "--log", log, env=home, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ""
    assert captions(log) == []
    (end,) = [line for line in read_log(log) if isinstance(line, EndLine)]
    assert end.audio_s == pytest.approx(60, abs=0.5)


def test_stop_in_the_middle_of_a_word_keeps_the_last_words(
    tmp_path: Path, home: dict[str, str], recording: Path, start: Start
) -> None:
    log = tmp_path / "log.jsonl"
    arguments = ["run", recording, "--to", "de", "--headless", "--log", log]
    process = start("app.cli", *arguments, env=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: log.exists() and any(c.audio_s > 6 for c in captions(log)), 120, "six seconds are recognised")
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    (end,) = [line for line in read_log(log) if isinstance(line, EndLine)]
    last = [caption for caption in captions(log) if caption.final][-1]
    assert last.stable

    part, whole = tmp_path / "part.wav", tmp_path / "part.jsonl"
    samples, rate = soundfile.read(recording)
    soundfile.write(part, samples[: int(end.audio_s * rate)], rate)
    done = surtitle("run", part, "--to", "de", "--headless", "--fast", "--log", whole, env=home, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    heard, expected = final_source(log).split(), final_source(whole).split()
    assert len(heard) >= len(expected) - 1
    assert word_error_rate(" ".join(expected), " ".join(heard)) < 0.15
