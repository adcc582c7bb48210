"""What stands between the journals and their windows: transcript, export, recovery.

`app.main` makes one and connects it to the subtitle window.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QWidget

from app.errors import UserError
from app.export.writer import export
from app.files import sessions_folder
from app.reading import Reading
from app.session_files import (
    bookmark_session,
    delete_session,
    interrupted_sessions,
    recover_session,
    session_files,
    summarise,
)
from app.session_record import SessionRecord, TranscriptError, read_session
from app.settings import ExportSettings, SettingsStore
from app.tasks import Tasks
from app.threads import in_thread
from app.transcript import Transcript
from app.widgets.export_dialog import ExportDialog
from app.widgets.recovery_dialog import RecoveryDialog
from app.widgets.transcript_window import TranscriptWindow

log = logging.getLogger(__name__)

READ_S = 60.0


class Transcripts:
    """One transcript window, one export dialog. `complain` is given sentences that no window of ours shows."""

    def __init__(
        self, parent: QWidget, transcript: Transcript, settings: SettingsStore, complain: Callable[[str], None]
    ) -> None:
        self.window: TranscriptWindow | None = None
        self.export_dialog: ExportDialog | None = None
        self.recovery: RecoveryDialog | None = None
        self._parent, self._transcript, self._settings = parent, transcript, settings
        self._reading = Reading()
        self._shown: Path | None = None
        self._title = ""
        self._exported: SessionRecord | None = None
        self._complain = complain
        self._tasks = Tasks(self._say)
        self._leave = transcript.rows.subscribe(self._journal_row)

    async def close(self) -> None:
        """Close the windows and finish what runs."""
        self._leave()
        await self._tasks.finish()
        self._forget_window()
        for dialog in (self.export_dialog, self.recovery):
            if dialog is not None:
                dialog.hide()
                dialog.deleteLater()

    # ------------------------------------------------------------ the transcript

    def open(self) -> None:
        """The running session, or the last one, in the transcript window."""
        if self.window is None:
            window = self.window = TranscriptWindow(self._reading)
            window.setWindowIcon(self._parent.windowIcon())
            window.opened.connect(lambda path: self._tasks.spawn(lambda: self._show(path)))
            window.delete.connect(lambda paths: self._tasks.spawn(lambda: self._delete(paths)))
            window.bookmark.connect(self._bookmark)
            window.export.connect(self.open_export)
            window.left.connect(self._forget_window)
        _raise(self.window)
        self._tasks.spawn(self._begin)

    async def _begin(self) -> None:
        live = self._transcript.path
        if live is not None and (self._shown is None or self._transcript.running):
            self._show_live()
        elif self._shown is None and (files := session_files(sessions_folder())):
            await self._show(files[0])
        await self._list()

    async def _list(self) -> None:
        folder = sessions_folder()
        summaries = await in_thread(lambda: [summarise(path) for path in session_files(folder)], READ_S)
        if self.window is not None:
            running = self._transcript.path if self._transcript.running else None
            self.window.show_sessions(summaries, running, self._shown)

    async def _show(self, path: Path) -> None:
        if path == self._transcript.path:
            self._show_live()
            return
        try:
            record = await in_thread(lambda: read_session(path), READ_S)
        except TranscriptError as error:
            self._say(str(error))
            return
        problem = ""
        if record.damaged_lines:
            problem = f"{record.damaged_lines} damaged line(s) of the session were left out."
        self._open(path, record, problem)

    def _show_live(self) -> None:
        record = self._transcript.record()
        if self._transcript.path is not None and record is not None:
            self._open(self._transcript.path, record, self._transcript.problem or "")

    def _open(self, path: Path, record: SessionRecord, problem: str) -> None:
        self._shown, self._title = path, record.title
        self._reading.open(record)
        if self.window is not None:
            self.window.show_state(self._title, problem)
            if path == self._transcript.path and self._reading.rows:
                self.window.view.scrollToBottom()

    def _journal_row(self, row: dict[str, Any]) -> None:
        if self.window is None:
            return
        live = self._transcript.path
        if row["type"] == "session":
            self._show_live()
        elif self._shown == live:
            self._reading.apply(row)
        if row["type"] in ("session", "end"):
            self._tasks.spawn(self._list)

    def _bookmark(self, utterance_id: int, on: bool) -> None:
        path = self._shown
        if path is None:
            return
        if path == self._transcript.path and self._transcript.running:
            self._transcript.bookmark(utterance_id, on)
            return
        try:
            bookmark_session(path, utterance_id, on)
        except TranscriptError as error:
            self._say(str(error))
            return
        self._reading.mark(utterance_id, on)

    async def _delete(self, paths: list[Path]) -> None:
        problem = ""
        for path in paths:
            try:
                delete_session(path)
            except TranscriptError as error:
                problem = str(error)
                continue
            if path == self._shown:
                self._shown, self._title = None, ""
                self._reading.open(None)
        self._say(problem)
        await self._list()

    def _say(self, sentence: str) -> None:
        if self.window is not None:
            self.window.show_state(self._title, sentence)
        elif sentence:
            self._complain(sentence)

    def _forget_window(self) -> None:
        window, self.window = self.window, None
        if window is not None:
            window.detach()
            window.hide()
            window.deleteLater()
            self._reading.open(None)
            self._shown = None

    # ------------------------------------------------------------ export

    def open_export(self) -> None:
        """Export what the transcript window shows, else the running or the last session."""
        if self.export_dialog is None:
            self.export_dialog = ExportDialog(self._parent)
            self.export_dialog.wanted.connect(lambda path, how: self._tasks.spawn(lambda: self._export(path, how)))
        self._tasks.spawn(self._show_export)

    async def _show_export(self) -> None:
        live = self._transcript.record()
        path = self._shown or self._transcript.path
        if path is None and (files := session_files(sessions_folder())):
            path = files[0]
        record: SessionRecord | None = None
        if path is not None and path == self._transcript.path:
            record = live
        elif path is not None:
            record = await in_thread(lambda: read_session(path), READ_S)
        self._exported = record
        if self.export_dialog is not None:
            running = self._transcript.running and path == self._transcript.path
            self.export_dialog.show_session(record, self._settings.value.export, running)
            _raise(self.export_dialog)

    async def _export(self, path: Path, how: ExportSettings) -> None:
        record = self._exported
        live = self._transcript.record()
        if record is not None and live is not None and live.session_id == record.session_id:
            record = live  # it may have grown while the dialog was open
        if record is None or self.export_dialog is None:
            return
        exported = record
        try:
            done = await in_thread(lambda: export(exported, path, how.what, how.columns, how.byte_order_mark), READ_S)
        except (UserError, TimeoutError) as error:
            self.export_dialog.show_result(str(error) or "The export took too long; try another place.", good=False)
            return
        log.info("%s", done.sentence)
        self._settings.update(export=how)
        self.export_dialog.show_result(done.sentence, good=True)

    # ------------------------------------------------------------ recovery

    def offer_recovery(self) -> None:
        """Ask what to do with sessions that were interrupted, if there are any."""
        self._tasks.spawn(self._offer)

    async def _offer(self) -> None:
        folder = sessions_folder()
        found = await in_thread(lambda: interrupted_sessions(folder), READ_S)
        if not found:
            return
        self.recovery = RecoveryDialog(found, self._parent)
        self.recovery.recover.connect(lambda paths: self._tasks.spawn(lambda: self._recover(paths)))
        _raise(self.recovery)

    async def _recover(self, paths: list[Path]) -> None:
        problem = ""
        for path in paths:
            try:
                recover_session(path)
            except TranscriptError as error:
                problem = str(error)
        self.open()
        if paths:
            await self._show(paths[0])
        await self._list()
        if problem:
            self._say(problem)


def _raise(widget: QWidget) -> None:
    widget.show()
    widget.raise_()
    widget.activateWindow()
