"""The session record: an append-only journal on disk while a session runs, and what is read back from it.

A journal is a file of JSON lines, `<start time>-<id>.jsonl`: `session`, then `stable` for each growth of
stable text, `final`, `gap` (audio that was lost), and `end`. Texts are cumulative within their utterance, so
that any line may be missing without harm. A killed process leaves no `end` line and at worst half a line,
which reading passes over.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from app.controller import Gap, Recorded, SessionBegan, SessionEnded
from app.errors import UserError
from app.files import AppendFile, is_being_written, reason
from engine.messages import Caption

SCHEMA_VERSION = 1
log = logging.getLogger(__name__)


class TranscriptError(UserError):
    """A session that cannot be found, read or deleted; the message is one sentence."""


class TranscriptProblem(UserError):
    """The journal cannot be written; the session is in memory. One sentence."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """Stable text of one utterance. `final` is false when the session was cut off inside it."""

    utterance_id: int
    source: str
    target: str
    start_s: float
    end_s: float
    final: bool


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session.

    `gaps`: (start_s, end_s) of lost audio; `ended`: false when the program was killed in it.
    """

    session_id: str
    title: str = ""
    preset: str = ""
    source_lang: str = ""
    target_lang: str = ""
    started_at: str = ""
    utterances: tuple[Utterance, ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()
    ended: bool = False
    audio_s: float = 0.0
    damaged_lines: int = 0

    @property
    def has_text(self) -> bool:
        return any(u.source.strip() or u.target.strip() for u in self.utterances)


class _Builder:
    """Builds a record from journal rows; the running session and the reader share it, so both see the same."""

    def __init__(self, session_id: str) -> None:
        self._record = SessionRecord(session_id)
        self._utterances: dict[int, Utterance] = {}
        self._gaps: list[tuple[float, float]] = []

    def grows(self, row: Utterance) -> bool:
        """Whether this utterance adds something.

        Stable text that shrank or changed does not count, and is logged.
        """
        old = self._utterances.get(row.utterance_id)
        if old is None:
            return bool(row.source or row.target or row.final)
        if old.final:
            return False
        if not (row.target.startswith(old.target) and row.source.startswith(old.source)):
            log.error("Stable text of utterance %d was changed; the first wording is kept.", row.utterance_id)
            return False
        return row.final or (row.source, row.target) != (old.source, old.target)

    def apply(self, row: dict[str, Any]) -> None:
        """Take one row. Raises KeyError, TypeError or ValueError when the row is damaged."""
        kind = row["type"]
        if kind == "session":
            if row["schema_version"] != SCHEMA_VERSION:
                raise ValueError(f"schema version {row['schema_version']}")
            self._record = replace(
                self._record,
                title=str(row["title"]),
                preset=str(row["preset"]),
                source_lang=str(row["source_lang"]),
                target_lang=str(row["target_lang"]),
                started_at=str(row["started_at"]),
            )
        elif kind in ("stable", "final"):
            utterance = Utterance(
                int(row["utterance_id"]),
                str(row["source"]),
                str(row["target"]),
                _seconds(row["start_s"]),
                _seconds(row["end_s"]),
                kind == "final",
            )
            if self.grows(utterance):
                self._utterances[utterance.utterance_id] = utterance
        elif kind == "gap":
            self._gaps.append((_seconds(row["start_s"]), _seconds(row["end_s"])))
        elif kind == "end":
            self._record = replace(self._record, ended=True, audio_s=_seconds(row["audio_s"]))
        else:
            raise ValueError(f"row type {kind!r}")

    def record(self, damaged_lines: int = 0) -> SessionRecord:
        spoken = [u for _, u in sorted(self._utterances.items()) if u.source.strip() or u.target.strip()]
        audio_s = max([self._record.audio_s, *(u.end_s for u in spoken)])
        return replace(
            self._record, utterances=tuple(spoken), gaps=tuple(self._gaps), audio_s=audio_s, damaged_lines=damaged_lines
        )


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"time {value!r}")
    return seconds


class Transcript:
    """Recorder of the running session: each session of the controller becomes one journal.

    When the disk fails, the session goes on in memory, each new line tries again, and `event` raises a
    `TranscriptProblem` as long as that lasts.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: AppendFile | None = None
        self._builder: _Builder | None = None

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

    def close(self) -> None:
        """End a session that did not end by itself. Raises `TranscriptProblem` when lines are not on disk."""
        self._end(0.0, "closed")
        self._tell()

    def _begin(self, event: SessionBegan) -> None:
        self._end(0.0, "another session began")
        began = datetime.fromtimestamp(event.began_unix_s).astimezone()
        session_id = f"{began:%Y%m%d-%H%M%S}-{event.session_id[:8]}"
        self._builder = _Builder(session_id)
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

    def _tell(self) -> None:
        if self.problem:
            raise TranscriptProblem(self.problem)


def _rounded(seconds: float) -> float:
    """Milliseconds are kept; a time that is no number is 0."""
    return round(seconds, 3) if math.isfinite(seconds) else 0.0


# ---------------------------------------------------------------- reading


def read_session(path: Path) -> SessionRecord:
    """Read a journal, whole or cut off.

    Damaged lines are counted and passed over. Raises `TranscriptError`.
    """
    try:
        rows = path.read_bytes().split(b"\n")
    except OSError as error:
        raise TranscriptError(f"The session {path.stem} cannot be read ({reason(error)}).") from error
    builder, damaged, good = _Builder(path.stem), 0, 0
    for raw in filter(None, (row.strip(b"\0\r ") for row in rows)):
        try:
            builder.apply(json.loads(raw))
            good += 1
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            damaged += 1
            log.warning("A damaged line in %s was passed over: %s", path, error)
    if damaged and not good:
        raise TranscriptError(f"The session {path.stem} is not a session journal or is damaged throughout.")
    return builder.record(damaged)


def session_files(folder: Path) -> list[Path]:
    """Journals of a folder, newest first; empty when the folder does not exist."""
    return sorted(folder.glob("*.jsonl"), key=lambda path: path.stem, reverse=True)


def find_session(folder: Path, name: str) -> Path:
    """The journal named by the beginning of its name or of its id, or "last". Raises `TranscriptError`."""
    files = session_files(folder)
    if not files:
        raise TranscriptError(f"There are no sessions in {folder} yet.")
    if name == "last":
        return files[0]
    found = [path for path in files if name and (path.stem.startswith(name) or short_id(path).startswith(name))]
    if not found:
        raise TranscriptError(f"There is no session '{name}'; `surtitle sessions` lists them.")
    if len(found) > 1:
        raise TranscriptError(f"'{name}' fits {len(found)} sessions: {', '.join(p.stem for p in found[:5])}.")
    return found[0]


def short_id(path: Path) -> str:
    """The random part of a journal's name."""
    return path.stem.rpartition("-")[2]


def is_running(path: Path) -> bool:
    """Whether a living process is recording this session."""
    return is_being_written(path)


def delete_session(path: Path) -> None:
    """Delete a journal. Raises `TranscriptError`, also while the session runs."""
    if is_running(path):
        raise TranscriptError(f"The session {path.stem} is still running: stop it before deleting it.")
    try:
        path.unlink()
    except OSError as error:
        raise TranscriptError(f"The session {path.stem} cannot be deleted ({reason(error)}).") from error
