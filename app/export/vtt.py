"""WebVTT: `HH:MM:SS.mmm`, text escaped."""

from __future__ import annotations

from app.export.cues import LINE_COLUMNS, cues
from app.export.srt import clock
from app.session_record import SessionRecord

NOTHING = "NOTE Nothing was said in this session."


def write(record: SessionRecord, what: str, columns: int = LINE_COLUMNS) -> str:
    """The session as WebVTT; with a note in place of cues when nothing was said."""
    blocks = ["WEBVTT"]
    for cue in cues(record, what, columns):
        times = f"{clock(cue.start_ms)} --> {clock(cue.end_ms)}".replace(",", ".")
        blocks.append("\n".join([times, *(escape(line) for line in cue.lines)]))
    if len(blocks) == 1:
        blocks.append(NOTHING)
    return "\n\n".join(blocks) + "\n"


def escape(text: str) -> str:
    """Text without markup: `&`, `<` and `>` as character references, which also takes care of an arrow."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
