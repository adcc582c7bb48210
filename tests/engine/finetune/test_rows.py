"""Rows: read by line, set aside once, and never trained on under another guise."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.finetune.rows import (
    FinetuneError,
    Row,
    draw,
    normalised,
    parts,
    read_held_out,
    read_rows,
    write_held_out,
)

HEADER = "en\tde\tfr\tes\tit"


def _write(folder: Path, name: str, sentences: list[str]) -> None:
    lines = [HEADER, *("\t".join([text, f"{text} D", f"{text} F", f"{text} E", f"{text} I"]) for text in sentences)]
    (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _write(tmp_path, "one", [f"Sentence {number} of the first." for number in range(12)])
    _write(tmp_path, "two", [f"Line {number} of the second." for number in range(9)])
    return tmp_path


def test_rows_know_their_file_and_line(folder: Path) -> None:
    rows = read_rows(folder)
    assert len(rows) == 21
    assert (rows[0].file, rows[0].number, rows[0].texts["it"]) == ("one", 2, "Sentence 0 of the first. I")
    assert len({row.row_id for row in rows}) == 21


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("en\tde\n", "does not begin with the line en de fr es it"),
        (f"{HEADER}\na\tb\tc\td\n", "Line 2"),
        (f"{HEADER}\na\tb\tc\td\te\na\tb\t \td\te\n", "Line 3"),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, content: str, names: str) -> None:
    (tmp_path / "rows.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(FinetuneError, match=names):
        read_rows(tmp_path)


def test_an_empty_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FinetuneError, match=r"no \.tsv files"):
        read_rows(tmp_path)


def test_the_draw_depends_on_the_seed_and_not_on_the_order_of_lines(folder: Path) -> None:
    rows = read_rows(folder)
    ids = {row.row_id for row in draw(rows, 4, seed=1)}
    assert len(ids) == 8
    assert {row.row_id for row in draw(rows[::-1], 4, seed=1)} == ids
    assert {row.row_id for row in draw(rows, 4, seed=2)} != ids
    with pytest.raises(FinetuneError, match=r"two\.tsv has 9"):
        draw(rows, 10, seed=1)


def test_rows_are_set_aside_once(folder: Path) -> None:
    rows = read_rows(folder)
    drawn = draw(rows, 3, seed=1)
    write_held_out(folder, drawn)
    assert read_held_out(folder) == {row.row_id: row.source for row in drawn}
    assert len(read_rows(folder)) == 21, "the list is no file of sentences"
    with pytest.raises(FinetuneError, match="exists"):
        write_held_out(folder, drawn)


def test_parts_have_nothing_in_common(folder: Path) -> None:
    rows = read_rows(folder)
    write_held_out(folder, draw(rows, 3, seed=1))
    use = parts([*rows, rows[0]], read_held_out(folder), development_per_file=2)
    ids = [row.row_id for part in (use.train, use.development, use.held_out) for row in part]
    assert (len(use.train), len(use.development), len(use.held_out)) == (11, 4, 6)
    assert len(set(ids)) == len(ids) == 21


def test_an_edited_row_that_was_set_aside_is_an_error(folder: Path) -> None:
    rows = read_rows(folder)
    write_held_out(folder, draw(rows, 3, seed=1))
    held_out = read_held_out(folder)
    edited = [
        Row(row.file, row.number, row.texts | {"en": "Quite another one."}) if row.row_id in held_out else row
        for row in rows
    ]
    with pytest.raises(FinetuneError, match="6 rows that are set aside are not among the sentences"):
        parts(edited, held_out, 2)


def test_what_two_writings_share() -> None:
    assert normalised("  Well — it’s 5 %, isn't it?") == normalised("well it s 5 isn t it")
