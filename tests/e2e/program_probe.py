"""The program as `surtitle` starts it, with an observer: `python -m tests.e2e.program_probe STATE`.

Nothing is replaced: ten times a second the observer writes to STATE what the program shows, and where.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QAbstractButton, QApplication, QListWidget, QWidget

from app import main as app_main
from app.cli import main as surtitle
from app.widgets.microphones_dialog import MicrophonesDialog
from app.widgets.transcript_window import TranscriptWindow


class ObservedMain(app_main.Main):
    """The program, observed."""

    state = Path()

    async def run(self) -> int:
        timer = QTimer()
        timer.timeout.connect(self._write)
        timer.start(100)
        try:
            return await super().run()
        finally:
            timer.stop()

    def _write(self) -> None:
        status = self.controller.status
        state = {
            "phase": status.phase.name,
            "source": status.source,
            "stable": " ".join(line.stable for line in self.controller.subtitles.lines),
            "windows": [_window(widget) for widget in QApplication.topLevelWidgets() if widget.isVisible()],
        }
        part = self.state.with_suffix(".part")
        part.write_text(json.dumps(state), encoding="utf-8")
        part.replace(self.state)


def _window(window: QWidget) -> dict[str, Any]:
    row: dict[str, Any] = {"title": window.windowTitle(), "widgets": {}}
    for button in window.findChildren(QAbstractButton):
        if button.isVisible() and button.isEnabled() and button.text():
            row["widgets"][button.text().replace("&", "")] = _place(button, 12 if button.isCheckable() else None)
    for listing in window.findChildren(QListWidget):
        for number in range(listing.count()):
            rect = listing.visualItemRect(listing.item(number))
            at = listing.viewport().mapToGlobal(rect.center())
            row["widgets"][listing.item(number).text().split("\n")[0]] = [at.x(), at.y()]
    if isinstance(window, MicrophonesDialog):
        row["level"] = window.meter.share
    if isinstance(window, TranscriptWindow):
        row["rows"], row["count"] = window.table.rowCount(), window.count.text()
    return row


def _place(widget: QWidget, x: int | None = None) -> list[int]:
    centre = widget.rect().center()
    at = widget.mapToGlobal(centre if x is None else centre.__class__(x, centre.y()))
    return [at.x(), at.y()]


if __name__ == "__main__":
    ObservedMain.state = Path(sys.argv[1])
    app_main.Main = ObservedMain  # type: ignore[misc]
    sys.exit(surtitle([]))
