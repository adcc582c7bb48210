"""SubRip: numbered cues, `HH:MM:SS,mmm`."""

from __future__ import annotations

import re

from app.export.cues import LINE_COLUMNS, cues
from app.session_record import SessionRecord

# SubRip has no escapes: a word joiner, which shows as nothing, keeps "<b>" and "{\an8}" from being read as markup, and
# an arrow or a time in the text from being read as a line of times.
_JOINER = "\u2060"
_MARKUP = re.compile(r"<(?=[A-Za-z/])|\{(?=\\)|--(?=>)|\d:\d\d?:\d\d?[,.](?=\d)")


def clock(time_ms: int) -> str:
    """Milliseconds as `HH:MM:SS,mmm`."""
    seconds, milliseconds = divmod(time_ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02},{milliseconds:03}"


def write(record: SessionRecord, what: str, columns: int = LINE_COLUMNS) -> str:
    """The session as SubRip; empty when nothing was said, since the format has no place to say so."""
    blocks = []
    for number, cue in enumerate(cues(record, what, columns), start=1):
        text = "\n".join(_MARKUP.sub(rf"\g<0>{_JOINER}", line) for line in cue.lines)
        blocks.append(f"{number}\n{clock(cue.start_ms)} --> {clock(cue.end_ms)}\n{text}\n")
    return "\n".join(blocks)
