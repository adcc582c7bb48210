"""A home that nobody may write into: each command does what it can, and says in one sentence what it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile

from app.export.validate import validate_file
from engine.models import cache_folder
from engine.presets import resources

ROOT = Path(__file__).resolve().parents[2]
REAL_CACHE = cache_folder().parents[1]
SLOW_S = 280  # a busy machine
# The superuser may write everywhere, unless it gives that right away.
WITHOUT_RIGHTS = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []

pytestmark = [
    pytest.mark.skipif(
        bool(WITHOUT_RIGHTS) and shutil.which("setpriv") is None, reason="the superuser may write everywhere"
    ),
    pytest.mark.timeout(SLOW_S + 20),
]


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "locked"
    folder.mkdir(0o500)
    yield folder
    folder.chmod(0o700)


def surtitle(home: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """The command line, with a home and without the user folders that the tests have."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return subprocess.run(
        [*WITHOUT_RIGHTS, sys.executable, "-P", "-m", "app.cli", *words],
        env={**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=SLOW_S,
        check=False,
    )


def test_the_home_is_really_locked(locked: Path) -> None:
    touch = subprocess.run([*WITHOUT_RIGHTS, "touch", str(locked / "x")], capture_output=True, check=False)
    assert touch.returncode != 0
    assert list(locked.iterdir()) == []


def test_commands_without_files_work(locked: Path) -> None:
    listed = surtitle(locked, "sessions")
    assert listed.returncode == 0
    assert "permission denied): there will be none." in listed.stderr.splitlines()[0]
    assert "There are no sessions" in listed.stderr
    report = surtitle(locked, "doctor").stdout
    assert f"– disk: {locked} cannot be written: transcripts stay in memory only" in report
    assert f"– log: {locked}" in report
    assert "Traceback" not in report
    assert list(locked.iterdir()) == []


@pytest.mark.models
def test_weights_that_cannot_be_prepared_are_one_sentence(locked: Path) -> None:
    done = surtitle(locked, "run", str(recording(locked.parent)), "--to", "de", "--headless", "--fast")
    assert done.returncode == 2
    assert done.stdout == ""
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"The weights of gemma-3-270m cannot be prepared in {locked}/.cache")
    assert "XDG_CACHE_HOME" in last
    assert done.stderr.count(last) == 1, "not by the log as well, which goes to standard error here"
    assert "Traceback" not in done.stderr


@pytest.mark.models
@pytest.mark.slow
def test_a_session_stays_in_memory_and_can_be_exported(locked: Path, tmp_path: Path) -> None:
    words = ["run", str(recording(tmp_path)), "--to", "de", "--headless", "--fast", "--export", str(tmp_path / "x.srt")]
    done = surtitle(locked, *words, XDG_CACHE_HOME=str(REAL_CACHE))
    assert done.returncode == 1, done.stderr  # the transcript could not be kept
    assert "it is kept in memory and tried again" in done.stderr
    assert "is incomplete: permission denied" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout.strip()
    assert validate_file(tmp_path / "x.srt") >= 1
    assert list(locked.iterdir()) == []


def recording(folder: Path) -> Path:
    """The first seconds of the bundled recording."""
    sound, rate = soundfile.read(resources() / "recordings" / "two-voices.flac", frames=12 * 16000)
    path = folder / "short.flac"
    soundfile.write(path, sound, rate)
    return path
