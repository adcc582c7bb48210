"""The program's own window, with an observer: `python -m tests.e2e.window_probe REPORT SHOTS [surtitle run …]`.

Nothing is replaced: the observer subscribes to the same models as the window and writes what is on screen, line by
line, to REPORT (flushed), and pictures of the window into SHOTS.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from app import main as app_main
from app.cli import main as surtitle
from app.status import Status
from app.subtitles import Line


class ObservedMain(app_main.Main):
    """The window, observed."""

    report = Path()
    shots = Path()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._file = self.report.open("a", encoding="utf-8")
        self._taken: set[str] = set()
        self.controller.changed.subscribe(self._on_status)
        self.controller.subtitles.changed.subscribe(self._on_line)

    def _on_status(self, status: Status) -> None:
        self._write(phase=status.phase.name, line=status.line, text=status.text)
        self._shoot(f"state-{status.phase.name.lower()}")

    def _on_line(self, line: Line | None) -> None:
        lines = self.controller.subtitles.lines
        if not lines:
            return
        newest = lines[-1]
        self._write(
            utterance=list(newest.key),
            stable=newest.stable,
            held=newest.held,
            painted=self.window.view.text(),
        )
        if newest.stable and newest.held:
            self._shoot("stable-and-held")

    def _shoot(self, name: str) -> None:
        if name not in self._taken and self.window.isVisible():
            self._taken.add(name)
            self.window.grab().save(str(self.shots / f"{name}.png"))

    def _write(self, **record: Any) -> None:
        self._file.write(json.dumps({"at_s": time.monotonic(), **record}, ensure_ascii=False) + "\n")
        self._file.flush()


if __name__ == "__main__":
    ObservedMain.report, ObservedMain.shots = Path(sys.argv[1]), Path(sys.argv[2])
    app_main.Main = ObservedMain  # type: ignore[misc]
    sys.exit(surtitle(sys.argv[3:]))
