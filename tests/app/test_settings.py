from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.settings import Settings, SettingsStore, Speed, load_settings, save_settings


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


@pytest.mark.parametrize(
    ("given", "kept"), [(-1, 20), (20, 20), (80, 80), (10**9, 80), ("x", 42), (None, 42), (1.5, 20)]
)
def test_a_line_length_out_of_range_is_mended(given: object, kept: int, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"target_lang": "fr", "export": {"columns": given, "format": ".doc", "new": 1}}))
    settings, notice = load_settings(path)
    assert (settings.export.columns, settings.export.format) == (kept, ".srt")
    assert (settings.target_lang, notice) == ("fr", None)
    assert settings.export.model_dump()["new"] == 1


@pytest.mark.parametrize("speed", [{"real_time_factor": -1, "lag_s": 0}, {"lag_s": 1}, "x", None, {"lag_s": "nan"}])
def test_a_damaged_measurement_costs_only_itself(speed: object, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    good = {"real_time_factor": 0.5, "lag_s": 2.0}
    path.write_text(json.dumps({"speeds": {"a": speed, "laptop": good}, "target_lang": "it"}))
    settings, notice = load_settings(path)
    assert (settings.target_lang, notice) == ("it", None)
    assert settings.speeds == {"laptop": Speed(**good)}


def test_a_context_is_cut_to_what_a_model_can_take() -> None:
    assert len(Settings(context="x" * 100_000).context) == 2000


def test_the_store_saves_and_tells(tmp_path: Path) -> None:
    path = tmp_path / "Ordner für Übung" / "settings.json"
    store, told, problems = SettingsStore(Settings(), path), [], []
    store.changed.subscribe(told.append)
    store.problem.subscribe(problems.append)
    store.update(target_lang="fr", licences=("A", "B"))
    store.update(target_lang="fr")
    assert len(told) == 1
    assert load_settings(path)[0] == store.value == told[0]
    assert problems == [""]
    with pytest.raises(ValueError):
        store.update(target_lang=3)
    assert store.value.target_lang == "fr"


def test_a_store_that_cannot_save_says_so_and_keeps_the_change(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store, problems = SettingsStore(Settings(), tmp_path / "file" / "settings.json"), []
    store.problem.subscribe(problems.append)
    store.update(microphone="Desk\n(ALSA)")
    assert "cannot be saved" in problems[0]
    assert store.value.microphone == "Desk\n(ALSA)"


def test_a_store_without_a_file_only_remembers() -> None:
    store = SettingsStore(Settings(), None)
    store.update(preset="remote")
    assert store.value.preset == "remote"


def test_a_second_damaged_file_does_not_replace_the_first(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    for text in ("{first", "{second"):
        path.write_text(text)
        load_settings(path)
    kept = {file.read_text() for file in tmp_path.glob("settings.damaged*")}
    assert kept == {"{first", "{second"}
