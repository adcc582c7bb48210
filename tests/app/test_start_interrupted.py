"""Ctrl-C while the program still starts: it ends, and without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.signals import signals_held
from tests.app.helpers import tone

ROOT = Path(__file__).resolve().parents[2]
# Presses Ctrl-C at the moment when the module named first is asked for.
PROGRAM = """
import os, signal, sys

class Finger:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            sys.meta_path.remove(self)
            print("pressed", flush=True)
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finger())
from app.cli import main
sys.exit(main(sys.argv[2:]))
"""


def interrupted(at: str, *words: str) -> tuple[int, str]:
    """Exit status (as a shell gives it) and standard error of a program interrupted at the import of a module."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, at, *words],
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.startswith("pressed"), done.stderr
    return (done.returncode if done.returncode >= 0 else 128 - done.returncode), done.stderr


@pytest.mark.parametrize("at", ["app.command_line", "engine.presets", "app.commands.run", "app.headless", "rich.live"])
def test_in_the_terminal(at: str, tmp_path: Path) -> None:
    assert interrupted(at, "run", str(tone(tmp_path / "a.wav")), "--headless") == (130, "")


@pytest.mark.parametrize("at", ["app.main", "PySide6.QtCore", "PySide6.QtWidgets", "app.widgets.subtitle_window"])
def test_with_a_window(at: str, tmp_path: Path) -> None:
    assert interrupted(at, "run", str(tone(tmp_path / "a.wav"))) == (130, "")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals cannot be held back here")
def test_a_process_begun_meanwhile_ignores_it_from_its_first_moment() -> None:
    program = (
        "import signal; from app.engine_launcher import run_child;"
        "print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []));"
        "run_child('builtins', 'print', 'commands', 'events', 0);"
        "print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []));"
        "print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
    )
    with signals_held():
        child = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert child.communicate(timeout=60)[0].splitlines() == ["True", "commands events 0", "False", "True"]
