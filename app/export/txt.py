"""Plain text: one utterance a line; with both languages the source above its translation, and a blank line between."""

from __future__ import annotations

from app.export.cues import by_time
from app.export.text import clean
from app.session_record import SessionRecord

NOTHING = "(Nothing was said in this session.)"


def write(record: SessionRecord, what: str, columns: int = 0) -> str:
    """The session as plain text, or a line in brackets when there is none."""
    blocks = []
    for utterance in by_time(record):
        source, target = clean(utterance.source), clean(utterance.target)
        lines = [source, target] if what == "both" else [source if what == "source" else target]
        blocks.append("\n".join(line for line in lines if line))
    text = ("\n\n" if what == "both" else "\n").join(filter(None, blocks))
    return f"{text or NOTHING}\n"
