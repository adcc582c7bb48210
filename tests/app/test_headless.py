"""Sessions in the terminal, as child processes with a fake engine, ended in every way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.export.validate import validate_file
from app.session_record import SessionRecord, read_session
from engine.schemas import CaptionLine, ErrorLine, read_log
from tests.app.helpers import tone

ROOT = Path(__file__).resolve().parents[2]
FINALS = ["Guten Morgen und herzlich willkommen zu", "diesem Vortrag über das Wetter von"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts `surtitle run --headless` on a tone; what is still there at the end is killed."""
    children = []

    def begin(*words: str, seconds: float = 4.0, **script: Any) -> subprocess.Popen[str]:
        sound = tone(tmp_path / "tone.wav", seconds)
        command = [sys.executable, "-m", "tests.app.fake_cli", "run", str(sound), "--headless", "--to", "de"]
        command += ["--context", json.dumps(script), *words]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT)
        children.append(child)
        return child

    yield begin
    for child in children:
        child.kill()
        child.communicate()


def journal(home: Path) -> SessionRecord:
    (path,) = (home / "data" / "surtitle" / "sessions").glob("*.jsonl")
    return read_session(path)


def wait_for_stable_text(home: Path, words: int) -> None:
    """Until the journal holds so many stable words."""
    end_s = time.monotonic() + 60
    while time.monotonic() < end_s:
        if any((home / "data").rglob("*.jsonl")):
            found = sum(len(u.target.split()) for u in journal(home).utterances)
            if found >= words:
                return
        time.sleep(0.05)
    pytest.fail("no stable text appeared")


def test_a_file_from_beginning_to_end(start: Any, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    names = [out / f"demo.{kind}" for kind in ("txt", "srt", "vtt", "jsonl")]
    child = start("--fast", "--log", str(out / "log.jsonl"), "--export", *map(str, names))
    stdout, stderr = child.communicate(timeout=100)
    assert child.returncode == 0, stderr
    assert stdout.splitlines()[:2] == FINALS
    assert "Laptop: English to German (demo quality)" in stderr
    assert "Loading: part 2 of 3" in stderr
    for name in names:
        assert f"Wrote {name}." in stderr
        assert validate_file(name) == 3
    assert f"Session log: {out / 'log.jsonl'}." in stderr
    assert "Transcript: " in stderr
    captions = [line for line in read_log(out / "log.jsonl") if isinstance(line, CaptionLine)]
    assert any(caption.held for caption in captions)
    record = journal(home)
    assert record.ended
    assert [u.target for u in record.utterances] == stdout.splitlines()
    assert names[0].read_text() == stdout


def test_a_log_that_is_only_for_the_picture_is_not_named(start: Any, tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    child = start("--fast", "--trace-plot", str(picture))
    _, stderr = child.communicate(timeout=100)
    assert "Session log" not in stderr
    assert "The log holds no traced caption" in stderr.splitlines()[-1], "it was written, and looked at"
    assert child.returncode == 2
    kept = tmp_path / "log.jsonl"
    _, stderr = start("--fast", "--trace-plot", str(picture), "--log", str(kept)).communicate(timeout=100)
    assert f"Session log: {kept}." in stderr


def test_ctrl_c_drains_and_still_exports(start: Any, home: Path, tmp_path: Path) -> None:
    child = start("--export", str(tmp_path / "a.srt"), seconds=120)
    wait_for_stable_text(home, 4)
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 0, stderr
    record = journal(home)
    assert record.ended
    assert all(u.final for u in record.utterances)
    assert [u.target for u in record.utterances] == stdout.splitlines()
    assert validate_file(tmp_path / "a.srt") >= 1


def test_second_ctrl_c_ends_at_once_and_keeps_what_was_stable(start: Any, home: Path, tmp_path: Path) -> None:
    child = start("--export", str(tmp_path / "a.txt"), seconds=120, on_stop="hang")
    wait_for_stable_text(home, 4)
    child.send_signal(signal.SIGINT)
    for line in child.stderr:
        if "Finishing" in line:
            break
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "the last words may be missing" in stderr
    words = " ".join(u.target for u in journal(home).utterances)
    assert words.startswith("Guten Morgen und herzlich")
    assert (tmp_path / "a.txt").read_text().split() == words.split() == stdout.split()


def test_a_dying_engine_is_status_1_and_loses_nothing(start: Any, home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    child = start("--log", str(log), "--export", str(tmp_path / "a.txt"), seconds=30, die_at=5)
    stdout, stderr = child.communicate(timeout=100)
    assert child.returncode == 1, stderr
    assert "The engine was killed (SIGKILL)" in stderr
    assert "Traceback" not in stderr
    assert stdout.split() == (tmp_path / "a.txt").read_text().split() == FINALS[0].split()[:5]
    record = journal(home)
    assert record.utterances[0].target.split() == FINALS[0].split()[:5]
    assert isinstance(read_log(log)[-2], ErrorLine)


@pytest.mark.parametrize(("load", "status", "sentence"), [("fail", 2, "weights are damaged"), ("die", 1, "engine")])
def test_models_that_do_not_load(start: Any, load: str, status: int, sentence: str, home: Path) -> None:
    child = start("--fast", load=load)
    stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout) == (status, "")
    assert sentence in stderr.splitlines()[-1]
    assert not any((home / "data").rglob("*.jsonl"))


def test_ctrl_c_while_loading(start: Any) -> None:
    child = start(load="hang")
    for line in child.stderr:
        if "part 3 of 3" in line:
            break
    child.send_signal(signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    assert (child.returncode, stdout) == (130, "")
    assert "Stopped before the session began." in stderr


def test_no_disk_for_the_export_is_one_sentence(start: Any, tmp_path: Path, home: Path) -> None:
    place = tmp_path / "a.txt"
    child = start("--export", str(place), seconds=120)
    wait_for_stable_text(home, 2)
    place.mkdir()
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert f"Cannot export to '{place}': it is a folder." in stderr
    assert journal(home).ended


def test_a_transcript_that_cannot_be_written_is_said_and_the_session_goes_on(start: Any, home: Path) -> None:
    (home / "data").mkdir()
    (home / "data" / "surtitle").write_text("in the way")
    child = start("--fast")
    stdout, stderr = child.communicate(timeout=100)
    assert child.returncode == 1
    assert stdout.splitlines()[:2] == FINALS
    assert "cannot be written" in stderr
    assert "Traceback" not in stderr
