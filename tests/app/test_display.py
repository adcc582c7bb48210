from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from app.display import display_problem

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="asks about X11 and Wayland")


def test_no_display_names_the_way_out() -> None:
    problem = display_problem({})
    assert problem
    assert "--headless" in problem


@pytest.mark.parametrize("display", [":4711", "localhost:4711", "nonsense", ":"])
def test_a_display_that_is_not_there(display: str) -> None:
    assert "cannot be reached" in str(display_problem({"DISPLAY": display}))


def test_a_chosen_platform_is_trusted() -> None:
    assert display_problem({"QT_QPA_PLATFORM": "offscreen"}) is None


def test_a_display_that_answers(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as wayland, socket.socket(socket.AF_UNIX) as x11:
        wayland.bind(str(tmp_path / "w0"))
        wayland.listen()
        x11.bind("\0/tmp/.X11-unix/X4712")
        x11.listen()
        assert display_problem({"WAYLAND_DISPLAY": "w0", "XDG_RUNTIME_DIR": str(tmp_path)}) is None
        assert display_problem({"DISPLAY": ":4712.0"}) is None
