"""Files are whole or absent; the log goes to its folder, and its absence stops nothing."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

import pytest

from engine.files import why, write_atomically
from engine.logs import log_to_file


def test_a_file_is_written_whole_with_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "new" / "notes.txt"
    write_atomically(path, "grüße\n")
    write_atomically(path, "ende\n")
    assert path.read_text(encoding="utf-8") == "ende\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["notes.txt"]
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_is_wrong_with_a_file_is_said_without_number_and_path(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xe8\xff")
    for path, said in (
        (tmp_path / "none", "no such file or directory"),
        (tmp_path, "is a directory"),
        (tmp_path / "text", "it is no text in UTF-8"),
    ):
        with pytest.raises((OSError, ValueError)) as caught:
            path.read_text(encoding="utf-8")
        assert why(caught.value) == said
    assert why(ValueError("Format 'x' is not supported.")) == "Format 'x' is not supported"


@pytest.mark.parametrize("where", ["fsync", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    path = tmp_path / "notes.txt"
    write_atomically(path, "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full) if where == "fsync" else monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    monkeypatch.undo()
    assert path.read_text(encoding="utf-8") == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_text_that_cannot_be_encoded_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text(encoding="utf-8") == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.fixture
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's folder for logs, and the loggers as they were afterwards."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = logging.getLogger("surtitle")
    before, level = list(root.handlers), root.level
    yield tmp_path / "state"
    for handler in [handler for handler in root.handlers if handler not in before]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(level)


def test_everything_below_surtitle_goes_to_the_log(state_folder: Path) -> None:
    path = log_to_file("engine")
    assert path is not None
    assert path.is_relative_to(state_folder)
    logging.getLogger("surtitle.session").info("a session began")
    logging.getLogger("surtitle.session").debug("a detail")
    logging.getLogger("elsewhere").info("not ours")
    (line,) = path.read_text(encoding="utf-8").splitlines()
    assert line.endswith("INFO surtitle.session MainThread: a session began")
    (handler,) = [one for one in logging.getLogger("surtitle").handlers if isinstance(one, RotatingFileHandler)]
    assert (handler.maxBytes, handler.backupCount) == (1_000_000, 1)


def test_no_folder_for_the_log_is_said_and_stops_nothing(state_folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    state_folder.write_text("a file where the folder should be")
    with caplog.at_level(logging.WARNING, "surtitle"):
        assert log_to_file("engine") is None
    assert "cannot be written (not a directory): there will be none" in caplog.text
