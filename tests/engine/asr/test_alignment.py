"""Words for the forced aligner, and times out of its classes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.asr.alignment import joined, mended, spans, units


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("We will, he said.", ["We|We", "will,|will", "he|he", "said.|said"]),
        ("It's 3.5 %", ["It's|It's", "3.5 %|35"]),
        ("an ill-disposed – man", ["an|an", "ill-disposed –|illdisposed", "man|man"]),
        ("— well", ["— well|well"]),
        ("well “ now ”", ["well|well", "“ now ”|now"]),
        ("我们用GPU来算。好", ["我|我", "们|们", "用|用", "GPU|GPU", "来|来", "算。|算", "好|好"]),
        ("他说（你好）吗？", ["他|他", "说|说", "（你|你", "好）|好", "吗？|吗"]),
        ("これはペンです。", [f"{one}|{one}" for one in "これはペンで"] + ["す。|す"]),
        ("한국어 문장입니다.", ["한국어|한국어", "문장입니다.|문장입니다"]),
        ("...", []),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert [f"{unit.text}|{unit.spoken}" for unit in units(text)] == expected


@given(st.text(st.sampled_from("ab'. ,-（）我们か\"“”。é3\n—"), max_size=40))
def test_no_character_is_lost_and_places_rise(text: str) -> None:
    found = units(text)
    kept = "".join(unit.text for unit in found).replace(" ", "")
    whole = "".join(text.split())
    if found:
        assert whole.startswith(kept)  # an opening mark at the end waits for a word that never came
        assert all(not character.isalnum() for character in whole[len(kept) :])
    assert all(before.start < after.start for before, after in pairwise(found))
    for unit in found:
        assert text[unit.start] == unit.text[0]
        assert unit.text == unit.text.strip()


@given(st.lists(st.sampled_from(["we", "go.", "我", "好。", "GPU", "3,5"]), max_size=8))
def test_joined_words_fall_apart_again(words: list[str]) -> None:
    assert [unit.text for unit in units(joined(words))] == words


def test_spaces_stand_between_latin_words_only() -> None:
    assert joined(["We", "use", "GPU", "来", "算。", "OK?"]) == "We use GPU来算。OK?"


def test_times_out_of_order_lie_between_their_neighbours() -> None:
    assert mended([1, 2, 90, 4, 5]) == [1, 2, 3, 4, 5]
    assert mended([50, 1, 2, 0, 8]) == [1, 1, 2, 5, 8]
    assert mended([1, 2, 8, 0]) == [1, 2, 8, 8]
    assert mended([]) == []
    assert mended([7]) == [7]


@given(st.lists(st.integers(0, 400), max_size=60))
def test_mended_times_never_fall_and_keep_what_was_in_order(classes: list[int]) -> None:
    times = mended(classes)
    assert len(times) == len(classes)
    assert times == sorted(times)
    if classes == sorted(classes):
        assert times == classes
    kept = sum(time == value for time, value in zip(times, classes, strict=True))
    longest = [1] * len(classes)
    for at in range(len(classes)):
        longest[at] += max((longest[b] for b in range(at) if classes[b] <= classes[at]), default=0)
    assert kept >= max(longest, default=0)


def test_spans_stay_in_the_window() -> None:
    assert spans([1, 5, 5, 40], 0.08, 2.0) == [(0.08, 0.4), (0.4, 2.0)]
