"""Where sentences end, and where to cut when they do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.asr.contract import Word
from engine.asr.utterances import CLAUSE_BONUS_S, best_pause, ends_clause, ends_sentence


@pytest.mark.parametrize(
    ("word", "following", "ends"),
    [
        ("home.", None, True),
        ("home.", "Then", True),
        ("home.", "then", False),  # a lower-case word goes on with the sentence
        ("home", "Then", False),
        ("home,", "Then", False),
        ("home?", "then", True),
        ("home!”", None, True),
        ("(home.)", None, True),
        ("well...", None, True),
        ("well…", "so", False),
        ("well…", "So", True),
        ("Dr.", "Smith", False),
        ("Mr.", None, False),
        ("e.g.", "apples", False),
        ("e.g.", None, False),
        ("z.B.", "Äpfel", False),
        ("U.S.", "Congress", False),
        ("U.S.", "The", True),
        ("p.m.", "We", True),
        ("p.m.", None, False),
        ("etc.", "The", True),
        ("Inc.", "Shares", False),
        ("J.", "Smith", False),
        ("I.", "We", True),  # the word, not an initial
        ("No.", "5", False),
        ("No.", "The", True),
        ("No.", None, True),
        ("3.5", "percent", False),
        ("5.", "Then", True),
        ("你好。", None, True),
        ("吗？", "我", True),
        ("है।", "वह", True),
        ("你好，", None, False),
        (".", None, True),
        ("", None, False),
        ("”", "So", False),
        ("home.", "“Then", True),
        ("home.", "¿y", False),
    ],
)
def test_sentence_ends(word: str, following: str | None, ends: bool) -> None:
    assert ends_sentence(word, following) is ends


@pytest.mark.parametrize(
    ("word", "ends"), [("so,", True), ("so:”", True), ("so.", True), ("so", False), ("，", True), ("", False)]
)
def test_clause_ends(word: str, ends: bool) -> None:
    assert ends_clause(word) is ends


def said(*rows: tuple[str, float, float]) -> list[Word]:
    return [Word(*row) for row in rows]


GAPS = said(("we", 0, 0.4), ("go", 0.6, 1.0), ("home,", 1.1, 1.5), ("and", 1.6, 2.0), ("rest", 2.1, 2.5))


@pytest.mark.parametrize(
    ("fewest", "most", "least_s", "count"),
    [
        (0, 5, 0.0, 3),  # the comma is worth more than the longer gap
        (0, 2, 0.0, 1),  # without it the longest gap
        (4, 5, 0.0, 4),  # not behind fewer words than asked
        (0, 5, 0.5, 0),  # nothing worth so much
        (0, 0, 0.0, 0),
        (6, 9, 0.0, 0),
    ],
)
def test_the_best_pause(fewest: int, most: int, least_s: float, count: int) -> None:
    assert best_pause(GAPS, fewest, most, least_s) == count


def test_of_equal_gaps_the_later_one() -> None:
    even = said(("a", 0, 1), ("b", 1, 2), ("c", 2, 3))
    assert best_pause(even, 0, 2) == 2
    assert best_pause(even, 0, 3) == 3


@given(st.text(), st.none() | st.text())
def test_any_text_has_an_answer(word: str, following: str | None) -> None:
    assert ends_sentence(word, following) in (True, False)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b,", "c."]), st.floats(0, 1), st.floats(0, 1)), max_size=10),
    st.integers(0, 11),
    st.integers(0, 11),
    st.floats(0, 1),
)
def test_a_pause_lies_where_it_was_asked_for(
    rows: list[tuple[str, float, float]], fewest: int, most: int, least_s: float
) -> None:
    at, words = 0.0, []
    for name, gap_s, length_s in rows:
        words.append(Word(name, at + gap_s, at + gap_s + length_s))
        at += gap_s + length_s
    count = best_pause(words, fewest, most, least_s)
    assert count == 0 or max(1, fewest) <= count <= min(most, len(words))
    if count and count < len(words):
        bonus_s = CLAUSE_BONUS_S if ends_clause(words[count - 1].text) else 0.0
        assert words[count].start_s - words[count - 1].end_s + bonus_s >= least_s
