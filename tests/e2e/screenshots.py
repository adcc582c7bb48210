"""The pictures of README, taken of the real program with the bundled recording on a screen of its own.

    python -m tests.e2e.screenshots [FOLDER]        `make screenshots`; FOLDER is resources/screenshots

Two minutes or less; user folders are empty ones, so the dialog shows a first start.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from PySide6.QtCore import QMargins, QTimer
from PySide6.QtGui import QGuiApplication

from app import main as app_main
from app.cli import main as surtitle
from app.subtitles import Line
from engine.presets import resources
from tests.e2e.machine import screen

STABLE_WORDS, HELD_WORDS = 5, 2  # what the picture of the window is to show at least
FINALS = 3  # and the transcript
SETTLE_S, PAINTED_MS = 1.5, 400
MARGIN = 16  # of the screen around the window, pixels
DIALOG = (900, 1040)  # tall enough for every preset
SEARCH = "Americans"
PICTURES = ("presets.png", "window.png", "transcript.png")  # in the order in which they are taken


class PhotographedMain(app_main.Main):
    """The window. Takes the dialog's picture, begins, takes the others when there is something to see, and leaves."""

    folder = Path()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._wanted = iter(PICTURES[1:])
        self._next = ""
        self.controller.subtitles.changed.subscribe(self._on_line)

    async def _begin(self) -> None:
        self.dialogs.open_presets()
        dialog = self.dialogs.presets
        assert dialog is not None
        dialog.resize(*DIALOG)
        while self.controller.machine is None:
            await asyncio.sleep(SETTLE_S)
        await asyncio.sleep(SETTLE_S)
        dialog.grab().save(str(self.folder / PICTURES[0]))
        dialog.hide()
        self._next = next(self._wanted)
        await super()._begin()

    def _on_line(self, line: Line | None) -> None:
        lines = self.controller.subtitles.lines
        if self._next == "window.png" and lines and _worth_seeing(lines[-1]):
            QTimer.singleShot(PAINTED_MS, self._take_window)
        elif self._next == "transcript.png" and sum(line.final for line in lines) >= FINALS:
            self._next = ""
            self._spawn(self._take_transcript)

    def _take_window(self) -> None:
        if self._next == "window.png" and _worth_seeing(self.controller.subtitles.lines[-1]):
            place = self.window.frameGeometry().marginsAdded(QMargins(MARGIN, MARGIN, MARGIN, MARGIN))
            screen = QGuiApplication.primaryScreen()
            screen.grabWindow(0, *place.getRect()).save(str(self.folder / self._next))  # type: ignore[call-overload]
            self._next = next(self._wanted)

    async def _take_transcript(self) -> None:
        self.transcripts.open()
        window = self.transcripts.window
        assert window is not None
        await asyncio.sleep(SETTLE_S)
        window.search.setText(SEARCH)
        await asyncio.sleep(SETTLE_S)
        window.grab().save(str(self.folder / "transcript.png"))
        self._leave()


def _worth_seeing(line: Line) -> bool:
    return len(line.stable.split()) >= STABLE_WORDS and len(line.held.split()) >= HELD_WORDS


def photograph(folder: Path) -> int:
    """Run the program on a screen and with user folders of its own; exit status 1 where a picture is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    with screen("1400x1200x24") as display, tempfile.TemporaryDirectory() as home:
        folders = {f"XDG_{name}_HOME": home for name in ("DATA", "CONFIG", "STATE")}
        words = [sys.executable, "-m", "tests.e2e.screenshots", "--on-this-screen", str(folder)]
        before = {name: _changed_ns(folder / name) for name in PICTURES}
        subprocess.run(words, env={**os.environ, **display, **folders}, timeout=300, check=True)
    missing = [name for name in PICTURES if _changed_ns(folder / name) == before[name]]
    print(*(folder / name for name in PICTURES if name not in missing), sep="\n")
    for name in missing:
        print(f"There is no new {name}.", file=sys.stderr)
    return 1 if missing else 0


def _changed_ns(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--on-this-screen"]:
        PhotographedMain.folder = Path(sys.argv[2])
        app_main.Main = PhotographedMain  # type: ignore[misc]
        sys.exit(surtitle(["run", str(resources() / "recordings" / "two-voices.flac"), "--to", "de"]))
    sys.exit(photograph(Path(sys.argv[1]) if sys.argv[1:] else resources() / "screenshots"))
