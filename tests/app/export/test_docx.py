"""The Word export, read back with python-docx."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import docx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.export.docx import write
from app.export.txt import NOTHING
from app.export.writer import export
from app.session_record import SessionRecord
from tests.app.captions import record

TALK = replace(
    record(("Good morning.", "Guten Morgen & <b>", 0.5, 1.5), ("Peace", "שלום", 3661.0, 3662.0)),
    title="Vortrag\nüber Wetter",
    source_lang="en",
    target_lang="de",
    started_at="2024-01-01T12:00:00+01:00",
    bookmarks=(1,),
)


def read(folder: Path, session: SessionRecord, what: str) -> docx.document.Document:
    path = folder / "größe 🎉.docx"
    assert "Wrote" in export(session, path, what).sentence
    return docx.Document(str(path))


@pytest.mark.parametrize(("what", "columns"), [("source", 2), ("target", 2), ("both", 3)])
def test_a_row_for_each_utterance(what: str, columns: int, tmp_path: Path) -> None:
    (table,) = read(tmp_path, TALK, what).tables
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    assert [len(row) for row in rows] == [columns] * 3
    assert rows[1][0] == "0:00:00"
    assert rows[2][0] == "★ 1:01:01", "a bookmark"
    assert rows[1][-1] == ("Good morning." if what == "source" else "Guten Morgen & <b>")


def test_title_pair_and_direction(tmp_path: Path) -> None:
    document = read(tmp_path, TALK, "target")
    assert document.paragraphs[0].text == "Vortrag über Wetter"
    assert "en → de" in document.paragraphs[1].text
    assert document.core_properties.created.hour == 11
    right_to_left = [cell for row in document.tables[0].rows for cell in row.cells if "w:bidi" in cell._tc.xml]
    assert [cell.text for cell in right_to_left] == ["שלום"]


def test_nothing_said_is_said(tmp_path: Path) -> None:
    document = read(tmp_path, SessionRecord("empty"), "target")
    assert [paragraph.text for paragraph in document.paragraphs][-1] == NOTHING
    assert not document.tables


@given(st.text(st.characters(codec=None), max_size=30), st.text(max_size=30))
@settings(max_examples=25, deadline=None)
def test_any_text_can_be_written(source: str, title: str) -> None:
    assert write(replace(record((source, source, 0.0, 1.0)), title=title), "both").startswith(b"PK")
