"""Where the window stands: on one of the screens, whatever was remembered and whatever is plugged in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QRect, QSize

from app.widgets.subtitle_place import Screen, initial, inside, pulled_back, remembered
from app.window_settings import Geometry

LEFT, RIGHT = Screen("eDP-1", QRect(0, 0, 1280, 760)), Screen("HDMI-1", QRect(1280, -200, 1920, 1080))
HINT = QSize(800, 160)


def test_a_new_window_is_at_the_bottom_in_the_middle() -> None:
    assert initial(None, [LEFT, RIGHT], HINT) == QRect(240, 560, 800, 160)


def test_the_same_place_on_the_same_screen() -> None:
    rect = QRect(1500, 100, 900, 200)
    kept = remembered(rect, [LEFT, RIGHT])
    assert (kept.screen, kept.x, kept.y) == ("HDMI-1", 220, 300)
    assert initial(kept, [LEFT, RIGHT], HINT) == rect
    moved = Screen("HDMI-1", QRect(-1920, 0, 1920, 1080))
    assert initial(kept, [LEFT, moved], HINT) == QRect(-1700, 300, 900, 200), "the screen was put to the left"


def test_a_screen_that_is_gone_brings_it_to_the_first_one() -> None:
    kept = remembered(QRect(1500, 100, 900, 200), [LEFT, RIGHT])
    assert initial(kept, [LEFT], HINT) == QRect(190, 520, 900, 200)


def test_a_window_that_hangs_over_the_edge_comes_back_to_the_screen_that_shows_most_of_it() -> None:
    assert pulled_back(QRect(1200, 100, 400, 100), [LEFT, RIGHT]) == QRect(1280, 100, 400, 100)
    assert pulled_back(QRect(-300, 700, 400, 100), [LEFT, RIGHT]) == QRect(0, 660, 400, 100)


numbers = st.integers(-40_000, 40_000)
sizes = st.integers(1, 32_000)


@given(numbers, numbers, sizes, sizes, st.sampled_from(["", "eDP-1", "HDMI-1", "gone\nname"]))
def test_all_of_it_is_always_on_one_screen(x: int, y: int, width: int, height: int, name: str) -> None:
    kept = Geometry(screen=name, x=x, y=y, width=width, height=height)
    for rect in (
        initial(kept, [LEFT, RIGHT], HINT),
        pulled_back(QRect(x, y, width, height), [LEFT, RIGHT]),
        inside(QRect(x, y, width, height), LEFT.area),
    ):
        assert LEFT.area.contains(rect) or RIGHT.area.contains(rect)
