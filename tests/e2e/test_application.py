"""The whole program on a real screen, from the first start on, driven by mouse and keys as a person would.

Fresh settings → licence → microphone → speech → search → export → kill → recovery.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.export.validate import validate_srt
from app.session_record import read_session
from tests.e2e.machine import Microphone, wait_for

pytestmark = pytest.mark.e2e
Start = Callable[..., "subprocess.Popen[bytes]"]
READY_S = 150  # a loaded machine and a cold disk; speed is measured elsewhere


class Program:
    """The running program, what its observer says of it, and hands to drive it with."""

    def __init__(self, folder: Path, env: dict[str, str], start: Start) -> None:
        self._folder, self._env = folder, env
        self.report = folder / f"state-{time.monotonic_ns()}.json"
        self.process = start("tests.e2e.program_probe", self.report, env=env)
        wait_for(self.report.exists, READY_S, "the program has begun")

    @property
    def state(self) -> dict[str, Any]:
        """What the program shows now: phase, windows with their places, buttons, text."""
        state: dict[str, Any] = json.loads(self.report.read_text(encoding="utf-8"))
        return state

    def window(self, title: str) -> dict[str, Any] | None:
        return next((row for row in self.state["windows"] if row["title"].startswith(title)), None)

    def wait(self, condition: Callable[[], object], what: str, limit_s: float = 60) -> None:
        wait_for(condition, limit_s, what)

    def click(self, title: str, widget: str) -> None:
        """Click a widget of a window with the mouse, wherever it is."""

        def place() -> list[int] | None:
            window = self.window(title)
            return window["widgets"].get(widget) if window else None

        wait_for(place, 30, f"'{widget}' is in '{title}'")
        at = place()
        assert at is not None
        self._do("mousemove", str(at[0]), str(at[1]), "sleep", "0.2", "click", "1")

    def type(self, title: str, *keys: str, text: str = "") -> None:
        """Keys, then text, into a window."""
        number = self._do("search", "--sync", "--onlyvisible", "--name", f"^{title}").split()[0]
        self._do("windowfocus", "--sync", number)
        for key in keys:
            self._do("key", key)
        if text:
            self._do("type", "--delay", "30", text)

    def _do(self, *words: str) -> str:
        environment = {**os.environ, **self._env}
        done = subprocess.run(["xdotool", *words], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shoot(self, name: str) -> None:
        """A picture of the whole screen, for people."""
        where = os.environ.get("SURTITLE_SHOTS")
        if where:
            environment = {**os.environ, **self._env}
            subprocess.run(["import", "-window", "root", f"{where}/{name}.png"], env=environment, timeout=60)


@pytest.fixture
def environment(home: dict[str, str], display: dict[str, str], voice: Microphone) -> dict[str, str]:
    return {**home, **display, **voice.environment, "LANGUAGE": "en", "LANG": "C.UTF-8"}


@pytest.mark.timeout(600)
def test_from_the_first_start_to_the_recovery(
    tmp_path: Path, environment: dict[str, str], start: Start, voice: Microphone, recording: Path
) -> None:
    sessions = Path(environment["XDG_DATA_HOME"]) / "surtitle" / "sessions"
    program = Program(tmp_path, environment, start)

    # A session in three clicks from a fresh install: accept the licence, start. Nothing else is asked.
    program.wait(lambda: program.window("Presets"), "the first start asks what to use", READY_S)
    program.shoot("1-first-start")
    program.click("Presets", "I accept the Gemma Terms of Use")
    program.click("Presets", "Start")
    program.wait(lambda: program.state["phase"] == "LISTENING", "the session runs", READY_S)

    # The virtual microphone is chosen by its name, and shows a level.
    program.type("Surtitle", "ctrl+m")
    program.wait(lambda: program.window("Microphone"), "the microphone dialog is there")
    talk = voice.play(recording)
    program.click("Microphone", "Monitor of Null Output")
    program.wait(lambda: program.window("Microphone")["level"] > 0.2, "the level moves")  # type: ignore[index]
    program.shoot("2-microphones")
    talk.terminate()
    talk.wait(10)
    program.click("Microphone", "Use this microphone")
    program.wait(lambda: "Null Output" in program.state["source"], "the chosen microphone is in use", READY_S)
    program.wait(lambda: program.state["phase"] == "LISTENING" and voice.listened_to(), "it listens", READY_S)

    # Speech becomes text, in the window and in the transcript.
    talk = voice.play(recording)
    program.wait(lambda: len(program.state["stable"].split()) > 12, "text is stable", 120)
    program.type("Surtitle", "ctrl+t")
    program.wait(lambda: program.window("Transcript"), "the transcript is there")
    program.wait(lambda: program.window("Transcript")["rows"] >= 2, "it grows", 120)  # type: ignore[index]
    talk.terminate()
    talk.wait(10)

    # Search finds a word that was said.
    newest = max(sessions.glob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    words = [word.strip(".,!?") for row in read_session(newest).utterances for word in row.source.split()]
    word = max(words, key=len)
    program.type("Transcript", "ctrl+f", text=word)
    program.wait(lambda: " of " in program.window("Transcript")["count"], "the word is found")  # type: ignore[index]
    program.shoot("3-transcript")

    # Export while the session runs.
    target = tmp_path / "alles über mich.srt"
    program.click("Transcript", "Export…")
    program.wait(lambda: program.window("Export"), "the export dialog is there")
    program.shoot("4-export")
    program.click("Export", "Save as…")
    program.wait(lambda: program.window("Save the export"), "a place is asked for")
    program.type("Save the export", "ctrl+a", text=str(target))
    program.shoot("5-save")

    def saved() -> bool:
        if not target.exists() and program.window("Save the export"):
            program.click("Save the export", "Save")  # the first click may only close the list of completions
            time.sleep(1)
        return target.exists()

    program.wait(saved, "the export is written")
    assert validate_srt(target.read_text(encoding="utf-8"))

    # A kill loses nothing that was stable; the next start offers it.
    stable = [row.target for row in read_session(newest).utterances]
    os.kill(program.process.pid, signal.SIGKILL)
    program.process.wait(10)
    again = Program(tmp_path, environment, start)
    again.wait(lambda: again.window("Interrupted sessions"), "the session is offered", READY_S)
    again.shoot("6-recovery")
    again.click("Interrupted sessions", "Recover and show")
    again.wait(lambda: again.window("Transcript"), "it is shown")
    again.wait(lambda: again.window("Transcript")["rows"] == len([t for t in stable if t]), "whole")  # type: ignore[index]
    record = read_session(newest)
    assert record.ended
    assert [row.target for row in record.utterances][: len(stable)] == stable

    # A second start raises the first and leaves.
    second = start("app.cli", env=environment, stderr=subprocess.PIPE)
    _, said = second.communicate(timeout=60)
    assert second.returncode == 0
    assert b"brought to the front" in said
    again.type("Surtitle", "ctrl+q")
    assert again.process.wait(60) == 0
