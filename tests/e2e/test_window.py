"""The real window on a real screen, with a voice in a real microphone; and what is left when something is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from app.session_record import read_session
from tests.e2e.conftest import word_error_rate
from tests.e2e.machine import Microphone, engine_of, group_is_gone, wait_for

pytestmark = pytest.mark.e2e
Start = Callable[..., "subprocess.Popen[bytes]"]
READY_S = 120  # a loaded machine and a cold disk; speed is measured elsewhere


class Observed:
    """A running window and what its observer has written so far."""

    def __init__(self, folder: Path, env: dict[str, str], start: Start, *arguments: object) -> None:
        self.folder, self._env = folder, env
        self._report = folder / "report.jsonl"
        self._report.touch()
        self.process = start("tests.e2e.window_probe", self._report, folder, "run", *arguments, env=env)

    @property
    def records(self) -> list[dict[str, Any]]:
        lines = self._report.read_text(encoding="utf-8").splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    @property
    def phase(self) -> str:
        return next((record["phase"] for record in reversed(self.records) if "phase" in record), "")

    def press(self, keys: str) -> None:
        """Press keys in the window, as a person does."""
        environment = {**os.environ, **self._env}
        search = ["xdotool", "search", "--sync", "--onlyvisible", "--name", "^Surtitle"]
        window = subprocess.run(search, env=environment, capture_output=True, text=True, timeout=30, check=True)
        number = window.stdout.split()[0]
        for command in (["windowfocus", "--sync", number], ["key", keys]):
            subprocess.run(["xdotool", *command], env=environment, timeout=30, check=True)

    def journal(self) -> Path:
        (path,) = Path(self._env["XDG_DATA_HOME"], "surtitle", "sessions").glob("*.jsonl")
        return path

    def stable(self) -> dict[tuple[int, ...], str]:
        """The newest stable text of each utterance that was on screen."""
        return {tuple(r["utterance"]): r["stable"] for r in self.records if "utterance" in r}


@pytest.fixture
def environment(home: dict[str, str], display: dict[str, str], voice: Microphone) -> dict[str, str]:
    return {**home, **display, **voice.environment}


@pytest.fixture
def listening(tmp_path: Path, environment: dict[str, str], start: Start, voice: Microphone) -> Observed:
    """A window that listens to the microphone."""
    observed = Observed(tmp_path, environment, start, "--mic", "--to", "de", "--preset", "laptop")
    wait_for(lambda: observed.phase == "LISTENING" and voice.listened_to(), READY_S, "the window listens")
    return observed


def test_a_voice_becomes_stable_text_on_screen_and_in_the_transcript(
    listening: Observed, voice: Microphone, recording: Path, spoken: str
) -> None:
    voice.play(recording).wait(180)
    time.sleep(2)  # what was played last is still on its way through the sound server
    listening.press("space")
    wait_for(lambda: listening.phase == "READY", 60, "the session has stopped")
    record = read_session(listening.journal())
    listening.press("ctrl+q")
    assert listening.process.wait(30) == 0

    assert record.ended
    assert word_error_rate(spoken, " ".join(utterance.source for utterance in record.utterances)) < 0.15
    on_screen = list(listening.stable().values())
    assert on_screen == [utterance.target for utterance in record.utterances if utterance.target]
    painted = " ".join(next(r["painted"] for r in reversed(listening.records) if "painted" in r))
    assert painted.split()[-3:] == on_screen[-1].split()[-3:]
    assert _held_then_stable(listening.records)
    assert (listening.folder / "stable-and-held.png").stat().st_size > 1000


def _held_then_stable(records: list[dict[str, Any]]) -> bool:
    """Whether a word was on screen as held and later, at the same place, as stable."""
    held: set[tuple[Any, ...]] = set()
    for record in records:
        if "utterance" not in record:
            continue
        key = tuple(record["utterance"])
        stable, shown = record["stable"].split(), (record["stable"] + record["held"]).split()
        if any((key, at, word) in held for at, word in enumerate(stable)):
            return True
        held |= {(key, at, word) for at, word in enumerate(shown) if at >= len(stable)}
    return False


def test_a_killed_engine_is_said_and_can_be_restarted(listening: Observed, voice: Microphone, recording: Path) -> None:
    talk = voice.play(recording)
    wait_for(lambda: any(listening.stable().values()), 60, "something is stable")
    engine = engine_of(listening.process.pid)
    assert engine is not None
    killed_s = time.monotonic()
    engine.kill()
    wait_for(lambda: listening.phase == "ENGINE_STOPPED", 10, "the window says that the engine stopped")
    said_s = next(r["at_s"] for r in listening.records if r.get("phase") == "ENGINE_STOPPED")
    assert said_s - killed_s < 1
    wait_for(lambda: group_is_gone(engine.pid), 5, "nothing of the engine is left")
    record = read_session(listening.journal())
    assert [utterance.target for utterance in record.utterances if utterance.target] == [
        text for text in listening.stable().values() if text
    ]

    before = len(listening.stable())
    listening.press("ctrl+r")
    wait_for(lambda: listening.phase == "LISTENING", READY_S, "the new engine listens")
    talk.terminate()
    talk.wait(10)
    again = voice.play(recording)
    wait_for(lambda: len([t for t in listening.stable().values() if t]) > before, 90, "the new engine translates")
    again.terminate()
    again.wait(10)
    listening.press("ctrl+q")
    assert listening.process.wait(60) == 0


def test_a_killed_app_loses_nothing_stable_and_leaves_no_engine(
    listening: Observed, voice: Microphone, recording: Path
) -> None:
    talk = voice.play(recording)
    wait_for(lambda: any(listening.stable().values()), 60, "something is stable")
    engine = engine_of(listening.process.pid)
    assert engine is not None
    os.kill(listening.process.pid, signal.SIGKILL)
    listening.process.wait(10)
    wait_for(lambda: not psutil.pid_exists(engine.pid) or group_is_gone(engine.pid), 5, "the engine is gone too")
    talk.terminate()
    talk.wait(10)
    record = read_session(listening.journal())
    assert not record.ended
    assert [utterance.target for utterance in record.utterances if utterance.target] == [
        text for text in listening.stable().values() if text
    ]
