from __future__ import annotations

import stat
from pathlib import Path

import pytest

from app.files import AppendFile, is_being_written, replace_file


def test_replace_makes_the_folder_and_leaves_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ä.txt"
    replace_file(path, "eins\n")
    replace_file(path, "zwei\n")
    assert path.read_text(encoding="utf-8") == "zwei\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_replace_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    replace_file(path, "alt")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, "neu")
    assert path.read_text() == "alt"
    assert list(tmp_path.glob("*.part")) == []
    assert list(tmp_path.glob(".*.part")) == []


def test_replace_keeps_the_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("alt")
    path.chmod(0o640)
    replace_file(path, "neu")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_really_full_device_is_a_sentence() -> None:
    file = AppendFile(Path("/dev/full"), "session log")
    file.append("{}")
    assert file.problem == (
        "The session log /dev/full cannot be written (no space left on device): it is kept in memory and tried again."
    )
    file.close()
    assert file.problem == "The session log /dev/full is incomplete: no space left on device."


def test_lines_are_on_the_file_at_once_and_it_is_private(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "a.jsonl"
    file = AppendFile(path, "transcript")
    file.append("eins")
    file.append("zwei \ud800", sync=True)
    assert path.read_bytes() == b"eins\nzwei ?\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert is_being_written(path)
    file.close()
    assert not is_being_written(path)
    assert not is_being_written(tmp_path / "none")
