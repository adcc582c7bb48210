"""What a run leaves behind: the transcript, the session log if asked for, and exports at the end of each session."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from app.controller import Recorded, Recorder, SessionEnded
from app.errors import UserError
from app.export.writer import Exported, ExportError, export
from app.files import sessions_folder
from app.options import RunOptions
from app.session_log import SessionLog
from app.trace import Trace
from app.transcript import Transcript


class Exporter:
    """Recorder that writes the exports when a session ends, also one that was interrupted.

    A second session of the same run goes to `<name>-2`, so that nothing is overwritten.
    """

    def __init__(self, paths: tuple[Path, ...], what: str, transcript: Transcript) -> None:
        self.written: list[Exported] = []
        self.failed = False
        self._paths, self._what, self._transcript = paths, what, transcript
        self._sessions = 0

    def event(self, event: Recorded) -> None:
        """Raises `ExportError` with a sentence for each export that failed; the others are written."""
        if not isinstance(event, SessionEnded):
            return
        record = self._transcript.record()
        if record is None:
            return
        self._sessions += 1
        problems = []
        for path in self._paths:
            if self._sessions > 1:
                path = path.with_stem(f"{path.stem}-{self._sessions}")
            try:
                self.written.append(export(record, path, self._what))
            except ExportError as error:
                problems.append(str(error))
        if problems:
            self.failed = True
            raise ExportError(" ".join(problems))


class Records:
    """The recorders of a run, in the order in which they hear of things.

    `recorders` goes to the controller.
    """

    def __init__(self, options: RunOptions, say: Callable[[str], None] | None = None) -> None:
        """`say` is given the lines of the trace, if there is one; without it they go to standard error."""
        self.transcript = Transcript(sessions_folder())
        self.log = SessionLog(options.log) if options.log else None
        self._log_kept = options.log_kept
        self.exporter = Exporter(options.exports, options.what, self.transcript)
        self.recorders: list[Recorder] = [self.transcript, self.exporter]
        if self.log:
            self.recorders.insert(1, self.log)
        if options.trace:
            self.recorders.append(Trace(say or _to_stderr))

    def close(self) -> list[str]:
        """Close the files; one sentence for each that is incomplete."""
        problems = []
        for recorder in (self.transcript, self.log):
            try:
                if recorder:
                    recorder.close()
            except UserError as error:
                problems.append(str(error))
        return problems

    def summary(self) -> list[str]:
        """Where everything is, one sentence each."""
        lines = [done.sentence for done in self.exporter.written]
        if self.log and self._log_kept and self.log.path.exists():
            lines.append(f"Session log: {self.log.path}.")
        if (path := self.transcript.path) and path.exists():
            lines.append(f"Transcript: {path}.")
        return lines


def _to_stderr(text: str) -> None:
    sys.stderr.write(text + "\n")
