"""JSON lines: one object an utterance, `{"source", "target", "start_ms", "end_ms"}` (see `validate.py`)."""

from __future__ import annotations

import json

from app.export.cues import by_time, span_ms
from app.export.text import clean
from app.session_record import SessionRecord


def write(record: SessionRecord, what: str, columns: int = 0) -> str:
    """The session as JSON lines, always with both languages; empty when nothing was said."""
    del what, columns
    rows = []
    for utterance in by_time(record):
        start_ms, end_ms = span_ms(utterance)
        row = {"source": clean(utterance.source), "target": clean(utterance.target)}
        if any(row.values()):
            rows.append(json.dumps({**row, "start_ms": start_ms, "end_ms": end_ms}, ensure_ascii=False) + "\n")
    return "".join(rows)
