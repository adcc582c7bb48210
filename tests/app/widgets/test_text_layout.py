"""How utterances become rows: wrapping, direction, and that only what changed is laid out again."""

from __future__ import annotations

import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtGui import QImage, QPainter

from app.subtitles import Line
from app.widgets.look import Look
from app.widgets.text_layout import CaptionLayout, right_to_left


def line(number: int, stable: str, held: str = "") -> Line:
    return Line((1, number), stable, held, "", "", False)


@pytest.fixture
def layout(qapp: object) -> CaptionLayout:
    made = CaptionLayout(Look())
    made.set_width(400)
    return made


def rows_high(layout: CaptionLayout, rows: int) -> float:
    return rows * layout.row_height + 1


def test_the_newest_rows_are_at_the_bottom(layout: CaptionLayout) -> None:
    lines = [line(0, "eins"), line(1, "zwei"), line(2, "drei")]
    assert layout.text(lines, rows_high(layout, 2)) == ["zwei", "drei"]
    assert layout.text(lines, 1.0) == ["drei"], "one row, however low the window"
    assert layout.text([], 100) == []


def test_text_wraps_at_words_and_loses_nothing(layout: CaptionLayout) -> None:
    text = "Guten Morgen und herzlich willkommen zu diesem Vortrag über das Wetter von morgen"
    rows = layout.text([line(0, text)], 10_000)
    assert len(rows) > 2
    assert " ".join(rows) == text


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "e\u0301\u0323", "🇩🇪", "नि", "한"])
def test_a_word_that_is_too_long_breaks_between_graphemes(layout: CaptionLayout, cluster: str) -> None:
    rows = layout.text([line(0, cluster * 60)], 10_000)
    assert len(rows) > 1
    assert "".join(rows) == cluster * 60
    whole = regex.findall(r"\X", cluster * 60)
    assert [piece for row in rows for piece in regex.findall(r"\X", row)] == whole


def test_markup_and_line_breaks_are_plain_text(layout: CaptionLayout) -> None:
    layout.set_width(2000)
    assert layout.text([line(0, "<b>a</b>\n<br>&amp;")], 10_000) == ["<b>a</b> <br>&amp;"]


@pytest.mark.parametrize(
    ("text", "expected"), [("", False), ("123 (", False), ("Hallo שלום", False), ("… שלום", True), ("مرحبا", True)]
)
def test_direction_is_that_of_the_first_letter(text: str, expected: bool) -> None:
    assert right_to_left(text) is expected


def test_right_to_left_text_ends_at_the_right_edge(layout: CaptionLayout) -> None:
    def ink(text: str) -> tuple[int, int]:
        image = QImage(400, 60, QImage.Format.Format_ARGB32)
        image.fill(0)
        painter = QPainter(image)
        layout.paint(painter, [line(0, text)], 60.0)
        painter.end()
        columns = [x for x in range(400) if any(image.pixel(x, y) for y in range(60))]
        return columns[0], columns[-1]

    assert ink("Hallo")[0] < 10
    assert ink("שלום")[1] > 390


def test_only_the_utterance_that_changed_is_wrapped_again(layout: CaptionLayout) -> None:
    lines = [line(number, f"Satz {number}") for number in range(5)]
    layout.text(lines, 10_000)
    before = {key: laid.rows for key, laid in layout._laid.items()}
    lines[4] = line(4, "Satz 4 geht", " weiter")
    layout.text(lines, 10_000)
    changed = [key for key, laid in layout._laid.items() if laid.rows is not before[key]]
    assert changed == [(1, 4)]
    layout.text(lines[3:], 10_000)
    assert len(layout._laid) == 2, "what left the model is forgotten"


def test_becoming_stable_moves_no_letter(layout: CaptionLayout) -> None:
    held = layout.text([line(0, "Guten", " Morgen und herzlich willkommen zu diesem Vortrag")], 10_000)
    stable = layout.text([line(0, "Guten Morgen und herzlich willkommen zu diesem Vortrag")], 10_000)
    assert held == stable


def test_held_text_that_goes_away_moves_nothing_and_leaves_stable_text_in_sight(layout: CaptionLayout) -> None:
    height, long = rows_high(layout, 2), " und so weiter" * 12
    layout.text([line(0, "Guten Morgen")], height)
    assert layout.text([line(0, "Guten Morgen", long)], height)[0].startswith("Guten Morgen")
    bottom = layout.bottom
    assert layout.text([line(0, "Guten Morgen")], height) == ["Guten Morgen"]
    assert layout.bottom == bottom, "the row did not come down again"
    assert layout.text([line(0, "Guten Morgen"), line(1, "", "Neu")], height) == ["Guten Morgen", "Neu"]


def test_one_row_shows_what_is_being_said(layout: CaptionLayout) -> None:
    height = rows_high(layout, 1)
    assert layout.text([line(0, "eins")], height) == ["eins"]
    assert layout.text([line(0, "eins"), line(1, "", "zwei")], height) == ["zwei"]
    assert layout.text([line(0, "eins")], height) == ["eins"]


def test_a_row_keeps_its_slot_when_earlier_text_shrinks(layout: CaptionLayout) -> None:
    height, long = rows_high(layout, 6), " und so weiter" * 5
    layout.text([line(0, "eins", long), line(1, "zwei")], height)
    slots = {row.piece: slot for slot, row in layout.placed(height)}
    layout.text([line(0, "eins"), line(1, "zwei drei")], height)
    assert {row.piece: slot for slot, row in layout.placed(height)}["zwei drei"] == slots["zwei"]


def test_without_held_text_only_stable_text_is_there(qapp: object) -> None:
    layout = CaptionLayout(Look(show_held=False))
    layout.set_width(400)
    assert layout.text([line(0, "Guten", " Morgen"), line(1, "", "nichts")], 1000) == ["Guten"]


words = st.lists(st.sampled_from(["eins", " zwei", " Wetterbericht,", " und", " heute"]), max_size=9).map("".join)


@given(st.lists(st.tuples(words, words, st.booleans()), min_size=1, max_size=12), st.integers(1, 4))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_view_only_scrolls_on_and_shows_the_newest_stable_word(
    qapp: object, updates: list[tuple[str, str, bool]], rows: int
) -> None:
    layout = CaptionLayout(Look())
    layout.set_width(300)
    lines = [line(0, "")]
    bottom = 0
    for more, held, next_one in updates:
        lines[-1] = line(len(lines) - 1, lines[-1].stable + more, held)
        shown = layout.text(lines, rows_high(layout, rows))
        assert len(shown) <= rows
        assert shown or not any(one.runs for one in lines)
        if rows > 1 and shown:
            assert layout.bottom >= bottom
            newest = next((laid for laid in reversed(layout._laid.values()) if laid.stable), None)
            if newest is not None and newest.stable_slot is not None:
                assert layout.bottom - rows <= newest.stable_slot < layout.bottom
        bottom = layout.bottom
        if next_one:
            lines[-1] = line(len(lines) - 1, lines[-1].stable, "")
            lines.append(line(len(lines), ""))


def test_an_endless_utterance_is_painted_as_far_as_it_can_be_seen(layout: CaptionLayout) -> None:
    text = "und so weiter " * 700_000
    rows = layout.text([line(0, text, " bis zum Ende")], rows_high(layout, 3))
    assert len(rows) == 3
    rows = layout.text([line(0, text + "bis zum Ende")], rows_high(layout, 3))
    assert rows[-1].endswith("bis zum Ende")
    assert len(layout._laid[(1, 0)].rows) < 1000
