"""The journals on disk: listing, finding by the beginning of a name, deleting."""

from __future__ import annotations

from pathlib import Path

from app.files import is_being_written, reason
from app.session_record import TranscriptError


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
