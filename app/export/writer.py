"""Writes a session to a file in the format of its suffix."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.errors import UserError
from app.export import docx, jsonl, srt, txt, vtt
from app.export.cues import LINE_COLUMNS
from app.files import reason, replace_file
from app.session_record import SessionRecord

FORMATS: dict[str, Callable[[SessionRecord, str, int], str]] = {
    ".txt": txt.write,
    ".srt": srt.write,
    ".vtt": vtt.write,
    ".jsonl": jsonl.write,
}
DOCX = ".docx"
SUFFIXES = (*FORMATS, DOCX)
WHAT = ("source", "target", "both")
MARKED = (".txt", ".srt", ".vtt")  # formats in which a byte-order mark may stand


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
    if path.suffix.lower() not in SUFFIXES:
        formats = ", ".join(SUFFIXES)
        raise ExportError(f"Cannot export to '{path}': the name must end in one of {formats}.")
    if path.is_dir():
        raise ExportError(f"Cannot export to '{path}': it is a folder.")


def export(
    record: SessionRecord,
    path: Path,
    what: str = "target",
    columns: int = LINE_COLUMNS,
    byte_order_mark: bool = False,
) -> Exported:
    """Write a session. `what`: "source", "target" or "both" (JSON lines always hold both); subtitle lines have at most
    `columns`. Text is UTF-8, with a byte-order mark where that is asked for and allowed. Raises `ExportError`.
    """
    check_path(path)
    if what not in WHAT:
        raise ExportError(f"Cannot export '{what}': choose one of {', '.join(WHAT)}.")
    suffix = path.suffix.lower()
    data = content(record, suffix, what, columns)
    if byte_order_mark and suffix in MARKED:
        data = codecs.BOM_UTF8 + data
    try:
        replace_file(path, data)
    except OSError as error:
        raise ExportError(
            f"Cannot write {path} ({reason(error)}): the session is kept, export it to another place."
        ) from error
    return Exported(path, not record.has_text)


def content(record: SessionRecord, suffix: str, what: str, columns: int = LINE_COLUMNS) -> bytes:
    """The bytes of an export. Raises `ExportError` when a format's library is missing."""
    if suffix != DOCX:
        return FORMATS[suffix](record, what, columns).encode("utf-8", errors="replace")
    try:
        return docx.write(record, what)
    except ImportError as error:
        raise ExportError("Word files need the package 'python-docx'; install it with pip.") from error


def preview(record: SessionRecord, suffix: str, what: str, columns: int = LINE_COLUMNS) -> str:
    """What the export will say, for reading: of a Word file the text that goes into it."""
    return FORMATS[".txt" if suffix == DOCX else suffix](record, what, columns)
