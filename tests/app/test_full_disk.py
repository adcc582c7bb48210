"""A disk that is full, and folders that may not be written: one sentence each, and what was there stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.export.writer import SUFFIXES, ExportError, export
from app.session_files import TranscriptError, bookmark_session
from app.settings import Settings, load_settings, save_settings
from app.transcript import Transcript
from tests.app.captions import BEGAN, ENDED, caption, record

TALK = record(("One", "Eins", 0.0, 1.0))


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.files.os.fsync", no_room)


@pytest.mark.usefixtures("full")
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_export_on_a_full_disk_keeps_the_old_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"größe{suffix}"
    path.write_text("old")
    with pytest.raises(ExportError, match=r"Cannot write .*no space left on device.*another place"):
        export(TALK, path)
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name], "nothing half-written is left"


def test_settings_on_a_full_disk_keep_the_old_ones(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = tmp_path / "settings.json"
    save_settings(Settings(target_lang="fr"), path)
    request.getfixturevalue("full")
    assert "no space left on device" in str(save_settings(Settings(target_lang="it"), path))
    assert load_settings(path)[0].target_lang == "fr"


def test_a_bookmark_on_a_full_disk_is_one_sentence(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    transcript = Transcript(tmp_path)
    for event in (BEGAN, caption(0, "Eins", "One", final=True), ENDED):
        transcript.event(event)  # type: ignore[arg-type]
    assert transcript.path is not None
    request.getfixturevalue("full")
    with pytest.raises(TranscriptError, match="cannot be changed"):
        bookmark_session(transcript.path, 0, True)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_folder_that_is_read_only_is_one_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(0o500)
    with pytest.raises(ExportError, match="permission denied"):
        export(TALK, folder / "x.srt")
    assert "permission denied" in str(save_settings(Settings(), folder / "settings.json"))
