"""The session's transcript: an append-only journal on disk that grows while the session runs (see `session_record`)."""

from __future__ import annotations

import json
import math
from datetime import datetime
from pathlib import Path
from typing import Any

from app.controller import Gap, Recorded, SessionBegan, SessionEnded
from app.errors import UserError
from app.files import AppendFile
from app.observe import Notifier
from app.session_record import SCHEMA_VERSION, RecordBuilder, SessionRecord, Utterance
from engine.messages import Caption


class TranscriptProblem(UserError):
    """The journal cannot be written; the session is in memory. One sentence."""


class Transcript:
    """Recorder of the running session: each session of the controller becomes one journal.

    When the disk fails, the session goes on in memory, each new line tries again, and `event` raises a
    `TranscriptProblem` as long as that lasts. `rows` carries every journal row as soon as it counts.
    """

    def __init__(self, folder: Path) -> None:
        self.rows: Notifier[dict[str, Any]] = Notifier()
        self._folder = folder
        self._file: AppendFile | None = None
        self._builder: RecordBuilder | None = None

    @property
    def path(self) -> Path | None:
        """The journal of the running or the last session."""
        return self._file.path if self._file else None

    @property
    def problem(self) -> str | None:
        """One sentence while the journal cannot be written, else None."""
        return self._file.problem if self._file else None

    def record(self) -> SessionRecord | None:
        """A consistent snapshot of the running or the last session, also when the disk failed."""
        return self._builder.record() if self._builder else None

    def event(self, event: Recorded) -> None:
        """Take what the controller tells. Raises `TranscriptProblem`."""
        match event:
            case SessionBegan():
                self._begin(event)
            case Caption():
                self._caption(event)
            case Gap():
                self._add({"type": "gap", "start_s": _rounded(event.start_s), "end_s": _rounded(event.end_s)})
            case SessionEnded():
                self._end(event.audio_s, event.reason)
        self._tell()

    def bookmark(self, utterance_id: int, on: bool) -> None:
        """Mark an utterance of the running session, or take the mark back."""
        self._add({"type": "bookmark", "utterance_id": utterance_id, "on": on})

    @property
    def running(self) -> bool:
        """A session is being recorded."""
        return self._file is not None and not self._file.closed

    def close(self) -> None:
        """End a session that did not end by itself. Raises `TranscriptProblem` when lines are not on disk."""
        self._end(0.0, "closed")
        self._tell()

    def _begin(self, event: SessionBegan) -> None:
        self._end(0.0, "another session began")
        began = datetime.fromtimestamp(event.began_unix_s).astimezone()
        session_id = f"{began:%Y%m%d-%H%M%S}-{event.session_id[:8]}"
        self._builder = RecordBuilder(session_id)
        self._file = AppendFile(self._folder / f"{session_id}.jsonl", "transcript")
        self._add(
            {
                "type": "session",
                "schema_version": SCHEMA_VERSION,
                "preset": event.preset,
                "source_lang": event.source_lang,
                "target_lang": event.target_lang,
                "title": event.source_name,
                "started_at": began.isoformat(timespec="seconds"),
            },
            sync=True,
        )

    def _caption(self, event: Caption) -> None:
        start_s, end_s = _rounded(event.start_s), _rounded(event.end_s)
        utterance = Utterance(event.utterance_id, event.source_stable, event.stable, start_s, end_s, event.final)
        if self._builder and self._builder.grows(utterance):
            self._add(
                {
                    "type": "final" if event.final else "stable",
                    "utterance_id": event.utterance_id,
                    "source": event.source_stable,
                    "target": event.stable,
                    "start_s": start_s,
                    "end_s": end_s,
                },
                sync=event.final,
            )

    def _end(self, audio_s: float, why: str) -> None:
        if self._file and not self._file.closed:
            self._add({"type": "end", "audio_s": _rounded(audio_s), "reason": why}, sync=True)
            self._file.close()

    def _add(self, row: dict[str, Any], sync: bool = False) -> None:
        if self._builder and self._file and not self._file.closed:
            self._builder.apply(row)
            self._file.append(json.dumps(row, ensure_ascii=False), sync)
            self.rows.emit(row)

    def _tell(self) -> None:
        if self.problem:
            raise TranscriptProblem(self.problem)


def _rounded(seconds: float) -> float:
    """Milliseconds are kept; a time that is no number is 0."""
    return round(seconds, 3) if math.isfinite(seconds) else 0.0
