"""A letter that was painted stays on its row, whatever comes after it."""

from __future__ import annotations

import bisect

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st
from PySide6.QtGui import QFontMetricsF

from app.subtitles import Line
from app.widgets.look import Look
from app.widgets.steady_wrap import LONGEST, shared, wrap
from app.widgets.text_layout import CaptionLayout

WIDTH, RESERVE = 12, 1


class Typewriter:
    """Every letter is one wide, marks are none; rows break behind spaces, else anywhere between clusters."""

    def natural(self, text: str, start: int) -> int:
        end = at = start
        for used, match in enumerate(regex.finditer(r"\X", text[start : start + 20 * WIDTH]), 1):
            if used > WIDTH - RESERVE and not match[0].isspace():
                return end if end > start else start + max(1, at - start)
            at = start + match.end()
            if match[0].isspace():
                end = at
        return at

    def fits(self, piece: str) -> bool:
        return len(regex.findall(r"\X", piece)) <= WIDTH


def rows_of(text: str, starts: list[int]) -> list[str]:
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)] if starts else [], strict=True)]


def row_of(starts: list[int], index: int) -> int:
    return bisect.bisect_right(starts, index) - 1


words = st.lists(
    st.sampled_from(["a", "Wetter", "bericht", ",", ".", " ", "天", "。", "ก", "e\u0301", "\u0301", "👩‍👩‍👧", "x" * 80])
)


@given(st.lists(words.map("".join), min_size=1, max_size=8))
@example(["Guten Wetter", "bericht"])
@example(["Guten Tag x", ",", " und"])
def test_appending_moves_nothing(pieces: list[str]) -> None:
    text, starts, measure = "", list[int](), Typewriter()
    for piece in pieces:
        before, old, text = text, starts, text + piece
        starts = wrap(text, measure, before, old)
        assert "".join(rows_of(text, starts)) == text
        assert [row_of(starts, at) for at in range(len(before))] == [row_of(old, at) for at in range(len(before))]


@given(st.lists(st.tuples(words.map("".join), words.map("".join)), min_size=1, max_size=8))
def test_replacing_what_is_held_moves_nothing_that_stays(updates: list[tuple[str, str]]) -> None:
    stable, shown, starts, measure = "", "", list[int](), Typewriter()
    for more, held in updates:
        stable += more
        old, before, shown = starts, shown, stable + held
        starts = wrap(shown, measure, before, old)
        stays = range(shared(before, shown))
        assert [row_of(starts, at) for at in stays] == [row_of(old, at) for at in stays]


def test_a_word_that_grows_breaks_where_it_was_painted() -> None:
    measure = Typewriter()
    assert rows_of("Gut Wetter", wrap("Gut Wetter", measure)) == ["Gut Wetter"]
    starts = wrap("Gut Wetterbericht", measure, "Gut Wetter", [0])
    assert rows_of("Gut Wetterbericht", starts) == ["Gut Wetter", "bericht"]
    assert rows_of("Gut Wetterbericht", wrap("Gut Wetterbericht", measure)) == ["Gut ", "Wetterberic", "ht"]


def test_punctuation_hangs_into_the_reserve() -> None:
    text = "Gut Wetters"
    assert len(text) == WIDTH - RESERVE
    starts = wrap(text + ", und", Typewriter(), text, [0])
    assert rows_of(text + ", und", starts) == ["Gut Wetters, ", "und"]


def test_a_mark_that_joins_the_last_letter_stays_with_it() -> None:
    text = "x" * (WIDTH - RESERVE - 1) + "e"
    starts = wrap(text + "\u0301\u0323 f", Typewriter(), text, [0])
    assert rows_of(text + "\u0301\u0323 f", starts)[0].rstrip().endswith("e\u0301\u0323")


def test_an_endless_text_costs_no_more_than_a_long_one() -> None:
    text = "wort " * 2_000_000
    starts = wrap(text, Typewriter())
    assert len(text) - LONGEST - 100 < starts[0] <= len(text) - LONGEST + 100
    assert len(starts) < LONGEST


@given(st.text("ab", max_size=9), st.text("ab", max_size=9))
def test_shared_is_the_common_beginning(one: str, other: str) -> None:
    n = shared(one, other)
    assert one[:n] == other[:n]
    assert n == min(len(one), len(other)) or one[n] != other[n]


SAMPLES = {
    "Latin": "Der Wetterbericht, wie er heute (um acht!) kam: schön – wirklich; Donaudampfschifffahrtsgesellschaft.",
    "Chinese": "今天的天气预报说，明天会下雨。请带好雨伞！「谢谢」大家都来听这个讲座，我们现在开始吧。",
    "Thai": "สวัสดีครับยินดีต้อนรับทุกท่านเข้าสู่การบรรยายเรื่องสภาพอากาศในวันพรุ่งนี้ครับ",
    "Arabic": "صباح الخير ومرحبا بكم جميعا في هذه المحاضرة عن الطقس غدا، وشكرا لكم على حضوركم اليوم.",
    "Hebrew": "בוקר טוב וברוכים הבאים להרצאה הזאת על מזג האוויר של מחר, 123 ABC תודה רבה לכולם.",
    "Hindi": "सुप्रभात और कल के मौसम पर इस व्याख्यान में आपका हार्दिक स्वागत है, धन्यवाद।",
    "emoji": "Wetter 🌦️👩‍👩‍👧‍👦🇩🇪 und e\u0301\u0323o\u0308 gemischt 🌧️🌧️🌧️🌧️🌧️🌧️🌧️🌧️🌧️🌧️🌧️ Ende",
    "long word": "x" * 80 + " und " + "y" * 80,
}


@pytest.mark.parametrize("script", SAMPLES)
@pytest.mark.parametrize("width", [180.0, 333.0, 700.0])
@pytest.mark.parametrize("step", [1, 3, 7])
def test_nothing_jumps_on_real_rows(qapp: object, script: str, width: float, step: int) -> None:
    """Text comes a few letters at a time, as the worst recogniser would send it."""
    layout, text = CaptionLayout(Look()), SAMPLES[script]
    layout.set_width(width)
    # A cluster may grow at the end of a row that is painted; a font without its script gives each letter a box.
    widest = max(QFontMetricsF(layout._font).horizontalAdvance(cluster) for cluster in regex.findall(r"\X", text))
    old: list[int] = []
    for n in range(step, len(text) + step, step):
        layout.text([Line((1, 0), text[: n - 2], text[n - 2 : n], "", "", False)], 10_000)
        laid = layout._laid[(1, 0)]
        painted = range(max(0, n - step))
        assert [row_of(laid.starts, at) for at in painted] == [row_of(old, at) for at in painted]
        old = laid.starts
        clusters = [match.start() for match in regex.finditer(r"\X", laid.text)]
        assert set(laid.starts) <= set(clusters), "no cluster is cut"
        for row in laid.rows:
            assert row.layout.lineAt(0).naturalTextWidth() <= width + max(layout.row_height, widest), row.piece
