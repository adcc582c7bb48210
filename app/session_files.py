"""The journals on disk: listing, finding by the beginning of a name, deleting, and what is added to one afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from app.files import add_line, is_being_written, reason
from app.session_record import SCHEMA_VERSION, SessionRecord, TranscriptError, read_session

_TAIL_BYTES = 65_536  # the end of a journal is looked for in so much of it


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A session without its text.

    `state`: "running", "cut off", "damaged", "of a newer version", or "" for one that ended in order.
    """

    path: Path
    title: str = ""
    source_lang: str = ""
    target_lang: str = ""
    started: datetime | None = None
    audio_s: float = 0.0
    has_text: bool = False
    state: str = ""


def session_files(folder: Path) -> list[Path]:
    """Journals of a folder, newest first; empty when the folder does not exist."""
    return sorted(folder.glob("*.jsonl"), key=lambda path: path.stem, reverse=True)


def find_session(folder: Path, name: str) -> Path:
    """The journal named by the beginning of its name or of its id. Raises `TranscriptError`."""
    files = session_files(folder)
    if not files:
        raise TranscriptError(f"There are no sessions in {folder} yet.")
    found = [path for path in files if name and (path.stem.startswith(name) or short_id(path).startswith(name))]
    if not found:
        raise TranscriptError(f"There is no session '{name}'; `surtitle sessions` lists them.")
    if len(found) > 1:
        raise TranscriptError(f"'{name}' fits {len(found)} sessions: {', '.join(p.stem for p in found[:5])}.")
    return found[0]


def open_session(folder: Path, name: str, passed_over: Callable[[str], None]) -> SessionRecord:
    """The session of a name, as `find_session` finds it, read; "last" as `newest` has it. Raises `TranscriptError`."""
    return newest(folder, passed_over)[1] if name == "last" else read_session(find_session(folder, name))


def newest(folder: Path, passed_over: Callable[[str], None]) -> tuple[Path, SessionRecord]:
    """The newest session that can be read, and its journal. Raises `TranscriptError`.

    `passed_over` is given a sentence for each newer file that cannot be read or is empty.
    """
    files = session_files(folder)
    if not files:
        raise TranscriptError(f"There are no sessions in {folder} yet.")
    for path in files:
        try:
            record = read_session(path)
        except TranscriptError as error:
            passed_over(f"{str(error).rstrip('.')}; it was passed over.")
            continue
        if record.started_at or record.has_text:
            return path, record
        passed_over(f"The session {path.stem} is empty; it was passed over.")
    raise TranscriptError(f"None of the sessions in {folder} can be read.")


def short_id(path: Path) -> str:
    """The random part of a journal's name."""
    return path.stem.rpartition("-")[2]


def is_running(path: Path) -> bool:
    """Whether a living process is recording this session."""
    return is_being_written(path)


def summarise(path: Path) -> SessionSummary:
    """What can be said of a journal without reading all of it; never raises."""
    try:
        with path.open("rb") as file:
            head = json.loads(file.readline())
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            tail = [row for line in file.read().split(b"\n") if (row := _row(line))]
        if int(head["schema_version"]) > SCHEMA_VERSION:
            return SessionSummary(path, title=path.stem, state="of a newer version")
        started = datetime.fromisoformat(head["started_at"]).astimezone()
        title, source_lang, target_lang = (str(head[name]) for name in ("title", "source_lang", "target_lang"))
    except (OSError, ValueError, KeyError, TypeError):
        return SessionSummary(path, title=path.stem, state="damaged")
    ended = any(row.get("type") == "end" for row in tail)
    state = "running" if is_running(path) else "" if ended else "cut off"
    return SessionSummary(
        path,
        title,
        source_lang,
        target_lang,
        started,
        max([0.0, *(_number(row.get("audio_s", row.get("end_s"))) for row in tail)]),
        any(row.get("type") in ("stable", "final") for row in tail),
        state,
    )


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and value == value else 0.0


def interrupted_sessions(folder: Path) -> list[SessionSummary]:
    """Sessions with text that a crash or a kill has cut off and that nobody has looked after yet, newest first."""
    found = (summarise(path) for path in session_files(folder))
    return [summary for summary in found if summary.state == "cut off" and summary.has_text]


def recover_session(path: Path) -> None:
    """Give an interrupted session its end, so that it counts as whole. Raises `TranscriptError`."""
    audio_s = read_session(path).audio_s
    _add(path, {"type": "end", "audio_s": audio_s, "reason": "the program was interrupted"})


def bookmark_session(path: Path, utterance_id: int, on: bool) -> None:
    """Mark an utterance of a session that is over, or take the mark back. Raises `TranscriptError`."""
    _add(path, {"type": "bookmark", "utterance_id": utterance_id, "on": on})


def _add(path: Path, row: dict[str, Any]) -> None:
    try:
        add_line(path, json.dumps(row, ensure_ascii=False))
    except BlockingIOError as error:
        raise TranscriptError(f"The session {path.stem} is being recorded by another Surtitle.") from error
    except OSError as error:
        raise TranscriptError(f"The session {path.stem} cannot be changed ({reason(error)}).") from error


def delete_session(path: Path) -> None:
    """Delete a journal. Raises `TranscriptError`, also while the session runs."""
    if is_running(path):
        raise TranscriptError(f"The session {path.stem} is still running: stop it before deleting it.")
    try:
        path.unlink()
    except OSError as error:
        raise TranscriptError(f"The session {path.stem} cannot be deleted ({reason(error)}).") from error
