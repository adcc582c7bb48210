"""Writes a session to a file in the format of its suffix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.errors import UserError
from app.export import jsonl, srt, txt, vtt
from app.files import reason, replace_file
from app.session_record import SessionRecord

FORMATS: dict[str, Callable[[SessionRecord, str], str]] = {
    ".txt": txt.write,
    ".srt": srt.write,
    ".vtt": vtt.write,
    ".jsonl": jsonl.write,
}
WHAT = ("source", "target", "both")


class ExportError(UserError):
    """An export that cannot be written; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written. `empty`: nothing was said, and the file only says so."""

    path: Path
    empty: bool

    @property
    def sentence(self) -> str:
        nothing = " Nothing was said in this session, so it holds no text." if self.empty else ""
        return f"Wrote {self.path}.{nothing}"


def check_path(path: Path) -> None:
    """See, before a session, that a path can be an export. Raises `ExportError`."""
    if path.suffix.lower() not in FORMATS:
        formats = ", ".join(FORMATS)
        raise ExportError(f"Cannot export to '{path}': the name must end in one of {formats}.")
    if path.is_dir():
        raise ExportError(f"Cannot export to '{path}': it is a folder.")


def export(record: SessionRecord, path: Path, what: str = "target") -> Exported:
    """Write a session. `what`: "source", "target" or "both" (JSON lines always hold both). Raises `ExportError`."""
    check_path(path)
    if what not in WHAT:
        raise ExportError(f"Cannot export '{what}': choose one of {', '.join(WHAT)}.")
    text = FORMATS[path.suffix.lower()](record, what)
    try:
        replace_file(path, text)
    except OSError as error:
        raise ExportError(
            f"Cannot write {path} ({reason(error)}): the session is kept, export it to another place."
        ) from error
    return Exported(path, not record.has_text)
