"""Real models, a real window, a real microphone. Each test has user folders of its own; models come from one cache."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import jiwer
import pytest

from engine.presets import resources
from tests.e2e.machine import Microphone, end, microphone, screen

RECORDINGS = resources() / "recordings"


@pytest.fixture(scope="session")
def recording() -> Path:
    """The bundled recording."""
    return next(RECORDINGS.glob("*.flac"))


@pytest.fixture(scope="session")
def spoken(recording: Path) -> str:
    """What is said in it."""
    return " ".join(recording.with_suffix(".txt").read_text(encoding="utf-8").split())


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """User folders of this test; the cache stays, for the joined weights in it are the same for everybody."""
    return {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("DATA", "CONFIG", "STATE")}


@pytest.fixture
def display() -> Iterator[dict[str, str]]:
    """The environment that leads to a screen."""
    with screen() as environment:
        yield environment


@pytest.fixture
def voice() -> Iterator[Microphone]:
    """A microphone to speak into."""
    with microphone() as made:
        yield made


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a program of the project; whatever is left of it after the test is killed."""
    started: list[subprocess.Popen[bytes]] = []

    def run(module: str, *words: object, env: dict[str, str], **options: object) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", module, *map(str, words)]
        process = subprocess.Popen(command, env={**os.environ, **env}, **options)  # type: ignore[call-overload]
        started.append(process)
        return process

    yield run
    for process in started:
        end(process)


def word_error_rate(reference: str, hypothesis: str) -> float:
    """WER without case and punctuation."""
    clean = jiwer.Compose(
        [
            jiwer.ToLowerCase(),
            jiwer.SubstituteRegexes({r"[-—–]": " "}),
            jiwer.RemovePunctuation(),
            jiwer.RemoveMultipleSpaces(),
            jiwer.Strip(),
        ]
    )
    return float(jiwer.wer(clean(reference), clean(hypothesis)))
