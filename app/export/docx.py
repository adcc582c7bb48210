"""Word: a heading, what the session was, and a table of time and text, one row an utterance, for people who edit."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from app.export.cues import by_time, span_ms
from app.export.text import clean, right_to_left
from app.export.txt import NOTHING
from app.session_record import SessionRecord, Utterance

if TYPE_CHECKING:
    from docx.document import Document

_TITLES = {"source": "Source", "target": "Translation"}
_TIME_CM = 1.9


def write(record: SessionRecord, what: str) -> bytes:
    """The session as an Office Open XML document."""
    from docx import Document  # 0.3 s, and only for this

    document = Document()
    _describe(document, record)
    columns = ("source", "target") if what == "both" else (what,)
    utterances = [row for row in by_time(record) if any(_text(row, name) for name in columns)]
    if utterances:
        _table(document, record, utterances, columns)
    else:
        document.add_paragraph(NOTHING)
    packed = io.BytesIO()
    document.save(packed)
    return packed.getvalue()


def _describe(document: Document, record: SessionRecord) -> None:
    title = _plain(record.title) or record.session_id
    document.add_heading(title, level=1)
    facts = [record.started_at.replace("T", " "), f"{record.source_lang} → {record.target_lang}", record.preset]
    document.add_paragraph(" · ".join(filter(None, map(_plain, facts))))
    properties = document.core_properties
    properties.title, properties.author, properties.comments = title[:255], "Surtitle", ""
    properties.created = properties.modified = _moment(record.started_at)


def _moment(started_at: str) -> datetime:
    try:
        return datetime.fromisoformat(started_at).astimezone(UTC).replace(tzinfo=None)
    except ValueError:
        return datetime(2000, 1, 1)  # noqa: DTZ001 - the format's times are naive and in UTC


def _table(document: Document, record: SessionRecord, utterances: list[Utterance], columns: tuple[str, ...]) -> None:
    from docx.shared import Cm

    section = document.sections[0]
    room = (section.page_width or 0) - (section.left_margin or 0) - (section.right_margin or 0) - Cm(_TIME_CM)
    widths = [Cm(_TIME_CM), *[room // len(columns)] * len(columns)]
    table = document.add_table(rows=len(utterances) + 1, cols=len(widths), style="Table Grid")
    table.autofit = False
    cells = table._cells  # every access to `row.cells` walks the whole table
    for index, title in enumerate(("Time", *(_TITLES[name] for name in columns))):
        cells[index].paragraphs[0].add_run(title).bold = True
    for number, utterance in enumerate(utterances, start=1):
        marked = "★ " if utterance.utterance_id in record.bookmarks else ""
        texts = [f"{marked}{_clock(span_ms(utterance)[0])}", *(_text(utterance, name) for name in columns)]
        for index, text in enumerate(texts):
            paragraph = cells[number * len(widths) + index].paragraphs[0]
            paragraph.add_run(text)
            if right_to_left(text):
                _turn(paragraph)
    for number, cell in enumerate(cells):
        cell.width = widths[number % len(widths)]


def _text(utterance: Utterance, name: str) -> str:
    return _plain(utterance.source if name == "source" else utterance.target)


def _plain(text: str) -> str:
    """What XML can hold: `clean` text without the two characters that are none."""
    return clean(text).translate({0xFFFE: None, 0xFFFF: None})


def _clock(time_ms: int) -> str:
    seconds = time_ms // 1000
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _turn(paragraph: Any) -> None:
    from docx.oxml import OxmlElement

    paragraph._p.get_or_add_pPr().append(OxmlElement("w:bidi"))
