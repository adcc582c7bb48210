from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.settings import Settings, load_settings, save_settings


def test_round_trip_keeps_unknown_keys(tmp_path: Path) -> None:
    path = tmp_path / "a" / "settings.json"
    assert load_settings(path) == (Settings(), None)
    path.parent.mkdir()
    path.write_text(json.dumps({"target_lang": "fr", "from_the_future": [1]}))
    settings, notice = load_settings(path)
    assert (settings.target_lang, notice) == ("fr", None)
    settings.microphone = "Desk (ALSA)"
    assert save_settings(settings, path) is None
    assert json.loads(path.read_text())["from_the_future"] == [1]
    assert load_settings(path)[0] == settings


@pytest.mark.parametrize("text", ["", "{", "[]", '{"preset": 3}', "null", "\xff"])
def test_a_damaged_file_is_kept_aside_and_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(text.encode("latin-1"))
    settings, notice = load_settings(path)
    assert settings == Settings()
    assert notice
    assert "kept as" in notice
    assert not path.exists()
    assert (tmp_path / "settings.damaged").exists()


def test_places_that_cannot_be_used_are_one_sentence(tmp_path: Path) -> None:
    assert "cannot be read (is a directory)" in str(load_settings(tmp_path)[1])
    (tmp_path / "file").write_text("")
    assert "cannot be saved" in str(save_settings(Settings(), tmp_path / "file" / "settings.json"))
