"""Qt in tests needs no display, and no test reads or writes what belongs to the person."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.logs import stop_logging

os.environ["QT_QPA_PLATFORM"] = "offscreen"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The program's user folders, empty, for this process and its children: `config`, `data`, `state`, `cache`."""
    for name in ("CONFIG", "DATA", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    yield tmp_path
    stop_logging()


@pytest.fixture(autouse=True)
def tidy(request: pytest.FixtureRequest, home: Path) -> Iterator[None]:
    """A test with Qt leaves no window, timer, thread or process behind."""
    if not {"qapp", "qtbot"} & set(request.fixturenames):
        yield
        return
    from tests.app.leaks import nothing_left_behind

    with nothing_left_behind():
        yield
