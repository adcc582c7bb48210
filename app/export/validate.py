"""Checks of exported files, for tests, the demonstration and anybody who reads them. Each raises `ValueError`.

JSON lines, schema version 1: every line is an object of exactly `source`, `target` (strings), `start_ms`, `end_ms`
(whole numbers, end > start ≥ 0), starts never decrease. A line of version 1 does not spell its version, so that it
holds nothing but data; a later version has to, and is refused here.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.export.cues import LINE_COLUMNS, LINES, MAX_MS, MIN_MS, Cue
from app.export.text import columns
from app.export.vtt import NOTHING

SCHEMA_VERSION: Final = 1

_TIME = r"(\d{2,}):([0-5]\d):([0-5]\d)"
_SRT_TIMES = re.compile(rf"{_TIME},(\d{{3}}) --> {_TIME},(\d{{3}})")
_VTT_TIMES = re.compile(rf"{_TIME}\.(\d{{3}}) --> {_TIME}\.(\d{{3}})")


class ExportRow(BaseModel):
    """One utterance of a JSON lines export."""

    model_config = ConfigDict(extra="forbid", strict=True)

    schema_version: Literal[1] = Field(default=SCHEMA_VERSION, exclude=True)
    source: str
    target: str
    start_ms: int = Field(ge=0)
    end_ms: int


def validate_jsonl(text: str) -> list[ExportRow]:
    """The rows of a JSON lines export."""
    rows: list[ExportRow] = []
    for number, line in enumerate(_lines(text), start=1):
        try:
            row = ExportRow.model_validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"Line {number}: {first['msg']} at {first['loc']}.") from error
        if row.end_ms <= row.start_ms:
            raise ValueError(f"Line {number} ends at {row.end_ms} ms but starts at {row.start_ms} ms.")
        if rows and row.start_ms < rows[-1].start_ms:
            raise ValueError(f"Line {number} starts before the line above it.")
        rows.append(row)
    return rows


def validate_srt(text: str) -> list[Cue]:
    """The cues of a SubRip export."""
    found = []
    for number, block in enumerate(_blocks(text), start=1):
        if block[0] != str(number):
            raise ValueError(f"Cue {number} is numbered '{block[0]}'.")
        found.append(_cue(block[1:], _SRT_TIMES, number))
    return check_cues(found)


def validate_vtt(text: str) -> list[Cue]:
    """The cues of a WebVTT export; none only together with the note that says so."""
    blocks = _blocks(text)
    if not blocks or blocks[0] != ["WEBVTT"]:
        raise ValueError("A WebVTT file begins with the line WEBVTT.")
    if len(blocks) == 2 and blocks[1] == [NOTHING]:
        return []
    found = [_cue(block, _VTT_TIMES, number) for number, block in enumerate(blocks[1:], start=1)]
    if not found:
        raise ValueError("A WebVTT file without cues must say so in a note.")
    for cue in found:
        if any(re.search(r"[<>]|&(?!amp;|lt;|gt;)", line) for line in cue.lines):
            raise ValueError(f"The cue at {cue.start_ms} ms holds an unescaped &, < or >.")
    return check_cues([Cue(cue.start_ms, cue.end_ms, tuple(map(html.unescape, cue.lines))) for cue in found])


def validate_txt(text: str) -> list[str]:
    """The lines of a text export."""
    if not text.strip():
        raise ValueError("A text export is never empty.")
    return _lines(text)


def check_cues(found: Sequence[Cue]) -> list[Cue]:
    """The rules of `cues.py`."""
    previous_end = 0
    for number, cue in enumerate(found, start=1):
        if not MIN_MS <= cue.end_ms - cue.start_ms <= MAX_MS:
            raise ValueError(f"Cue {number} lasts {cue.end_ms - cue.start_ms} ms, outside {MIN_MS}–{MAX_MS} ms.")
        if cue.start_ms < previous_end:
            raise ValueError(f"Cue {number} starts at {cue.start_ms} ms, before the end of the one before it.")
        if not 1 <= len(cue.lines) <= LINES or not all(line.strip() for line in cue.lines):
            raise ValueError(f"Cue {number} has {len(cue.lines)} lines, or an empty one.")
        if wide := [line for line in cue.lines if columns(line) > LINE_COLUMNS]:
            raise ValueError(f"Cue {number} has a line of {columns(wide[0])} columns; {LINE_COLUMNS} are allowed.")
        previous_end = cue.end_ms
    return list(found)


VALIDATORS: dict[str, Callable[[str], Sequence[object]]] = {
    ".txt": validate_txt,
    ".srt": validate_srt,
    ".vtt": validate_vtt,
    ".jsonl": validate_jsonl,
}


def validate_file(path: Path) -> int:
    """Check an exported file by its suffix; the number of cues, rows or lines. Raises `ValueError`, `OSError`."""
    return len(VALIDATORS[path.suffix.lower()](path.read_bytes().decode("utf-8")))


def _lines(text: str) -> list[str]:
    if text and not text.endswith("\n"):
        raise ValueError("The last line has no line break: the file was cut off.")
    return text.split("\n")[:-1]


def _blocks(text: str) -> list[list[str]]:
    """Runs of lines between blank lines."""
    if text and not text.endswith("\n"):
        raise ValueError("The last line has no line break: the file was cut off.")
    return [block.split("\n") for block in text.strip("\n").split("\n\n") if block]


def _cue(block: Sequence[str], times: re.Pattern[str], number: int) -> Cue:
    match = times.fullmatch(block[0]) if block else None
    if match is None:
        raise ValueError(f"Cue {number} has no line of times.")
    values = [int(group) for group in match.groups()]
    start_ms, end_ms = (((h * 60 + m) * 60 + s) * 1000 + ms for h, m, s, ms in (values[:4], values[4:]))
    return Cue(start_ms, end_ms, tuple(block[1:]))
