"""One running program a person."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalSocket
from pytestqt.qtbot import QtBot

from app.single_instance import SingleInstance

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from pathlib import Path
from PySide6.QtCore import QCoreApplication
from app.single_instance import SingleInstance
app = QCoreApplication([])
first = SingleInstance(Path(sys.argv[1]))
print(first.claim(), flush=True)
first.raised.connect(lambda: print("raised", flush=True))
app.exec()
"""


@pytest.fixture
def first(qtbot: QtBot, tmp_path: Path) -> Iterator[SingleInstance]:
    made = SingleInstance(tmp_path)
    assert made.claim()
    yield made
    made.close()


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that is the first."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        yield process
        process.kill()


def test_a_second_start_raises_the_first(qtbot: QtBot, holder: subprocess.Popen[str], tmp_path: Path) -> None:
    second = SingleInstance(tmp_path)
    assert not second.claim()
    assert second.ask_first()
    assert holder.stdout is not None
    assert holder.stdout.readline() == "raised\n"


def test_a_killed_first_leaves_the_way_free(qtbot: QtBot, holder: subprocess.Popen[str], tmp_path: Path) -> None:
    holder.kill()
    holder.wait(10)
    second = SingleInstance(tmp_path)
    assert second.claim()
    second.close()


def test_another_person_is_another_first(first: SingleInstance, tmp_path: Path) -> None:
    other = SingleInstance(tmp_path / "of somebody else, with ü")
    assert other.name != first.name
    assert other.claim()
    other.close()


def test_after_the_end_the_next_is_first(first: SingleInstance, tmp_path: Path) -> None:
    first.close()
    second = SingleInstance(tmp_path)
    assert not second.ask_first()
    assert second.claim()
    second.close()


def test_a_folder_without_room_for_a_lock_does_not_keep_the_program_from_starting(qtbot: QtBot, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert SingleInstance(blocked / "sub").claim()


@pytest.mark.parametrize("said", [b"nonsense\n", b"x" * 1000, b"raise"])
def test_nonsense_is_not_obeyed(said: bytes, first: SingleInstance, qtbot: QtBot) -> None:
    socket = QLocalSocket()
    with qtbot.assertNotEmitted(first.raised):
        socket.connectToServer(first.name)
        assert socket.waitForConnected(2000)
        socket.write(said)
        socket.flush()
        qtbot.wait(100)
    socket.abort()


def test_two_starts_at_the_same_moment_have_one_first(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ)) for _ in "ab"]
    try:
        said = sorted(process.stdout.readline() for process in both if process.stdout)
        assert said == ["False\n", "True\n"]
    finally:
        for process in both:
            process.kill()
            process.communicate(timeout=10)
