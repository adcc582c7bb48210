"""The window's settings: whatever stands in the file, the rest of it still counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.settings import Settings, load_settings, save_settings
from app.window_settings import Geometry, WindowSettings


@pytest.mark.parametrize(
    ("name", "given_value", "expected"),
    [
        ("lines", 0, 1),
        ("lines", 1, 1),
        ("lines", 6, 6),
        ("lines", 10**9, 6),
        ("font_pt", -3, 8.0),
        ("font_pt", 1e300, 144.0),
        ("font_pt", float("nan"), 24.0),
        ("font_pt", float("inf"), 144.0),
        ("opacity", 7, 1.0),
        ("linger_s", 0, 6.0),
        ("outline_px", 100, 8.0),
        ("stable", "red", ""),
        ("stable", "#FFAA00", "#ffaa00"),
        ("theme", "purple", "system"),
        ("mark", None, "dots"),
        ("font", "A\nname\twith breaks", "A name with breaks"),
        ("shortcuts", ["no"], {}),
        ("geometry", {"x": "far"}, None),
        ("page", {"port": "x"}, WindowSettings().page),
    ],
)
def test_a_slip_costs_only_itself(name: str, given_value: Any, expected: Any) -> None:
    settings = WindowSettings.model_validate({name: given_value, "reading_mode": True})
    assert getattr(settings, name) == expected
    assert settings.reading_mode


def test_the_window_is_part_of_the_settings_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "ein Ordner mit Ümlaut" / "settings.json"
    settings = Settings(window=WindowSettings(lines=4, geometry=Geometry(screen="HDMI-1", x=-5, y=3), later="kept"))
    assert save_settings(settings, path) is None
    again, notice = load_settings(path)
    assert notice is None
    assert again.window == settings.window
    assert again.window.model_dump()["later"] == "kept"


def test_a_window_part_of_the_wrong_kind_does_not_cost_the_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"target_lang": "fr", "window": [1, 2]}', encoding="utf-8")
    settings, notice = load_settings(path)
    assert (settings.target_lang, settings.window, notice) == ("fr", WindowSettings(), None)


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(list(WindowSettings.model_fields)), json))
def test_anything_at_all_can_be_read(data: dict[str, Any]) -> None:
    settings = WindowSettings.model_validate(data)
    assert 1 <= settings.lines <= 6
    assert settings.linger_s >= 6
