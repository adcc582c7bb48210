"""When text became stable, what was withdrawn, what was held."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.evaluation.captions import common_length, computed_ms, erased_units, hold_shares, translated, unit_spans
from engine.schemas import CaptionLine
from tests.engine.evaluation.helpers import caption, one_utterance

CAPTIONS = [line for line in one_utterance() if isinstance(line, CaptionLine)]


def test_each_word_is_stable_from_the_caption_that_first_shows_it_for_good() -> None:
    found = translated(CAPTIONS, "de")
    assert [(unit.text, unit.heard_s) for unit in found.units] == [
        ("Das", 1.0),
        ("ist", 1.0),
        ("ein", 2.0),
        ("Satz.", 2.5),
    ]
    assert [unit.before_final for unit in found.units] == [True, True, True, False]
    assert found.units[0].emitted_s == 1.5
    assert (found.start_s, found.end_s, found.closed) == (0.0, 2.0, True)


def test_a_word_that_grows_counts_when_it_is_whole() -> None:
    found = translated([caption(0, "Haus", 1.0), caption(1, "Hausboot", 2.0, final=True)], "de")
    assert [(unit.text, unit.heard_s) for unit in found.units] == [("Hausboot", 2.0)]


def test_rewritten_text_counts_from_its_last_change() -> None:
    states = [caption(0, "Das war", 1.0), caption(1, "Der war", 1.5), caption(2, "Das war", 2.0, final=True)]
    assert [unit.heard_s for unit in translated(states, "de").units] == [2.0, 2.0]


def test_chinese_is_counted_in_characters() -> None:
    found = translated([caption(0, "你好", 1.0), caption(1, "你好 世界", 2.0, final=True)], "zh")
    assert [(unit.text, unit.heard_s) for unit in found.units] == [("你", 1.0), ("好", 1.0), ("世", 2.0), ("界", 2.0)]


@pytest.mark.parametrize(
    ("texts", "erased"),
    [
        ([""], 0),
        (["Das", "Das ist"], 0),
        (["Das ist", "Das war gut"], 1),
        (["Das ist ein", "Der"], 3),
        (["Das ist", ""], 2),
        (["Das", "Das ist", "Das", "Das war"], 1),
    ],
)
def test_erasure_counts_words_that_were_withdrawn(texts: list[str], erased: int) -> None:
    assert erased_units(texts, "de") == erased


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab ", max_size=8), max_size=6))
def test_text_that_only_grows_is_never_erased(parts: list[str]) -> None:
    texts = ["".join(parts[: at + 1]) for at in range(len(parts))]
    assert erased_units(texts, "de") == 0


@settings(deadline=None)
@given(st.text(max_size=10), st.text(max_size=10))
def test_common_length_is_the_longest_common_beginning(first: str, second: str) -> None:
    length = common_length(first, second)
    assert first[:length] == second[:length]
    assert length in (len(first), len(second)) or first[length] != second[length]


def test_held_text_by_captions_and_by_time() -> None:
    shares = hold_shares(CAPTIONS)
    assert shares.captions == pytest.approx(2 / 3)
    assert shares.time == pytest.approx((0.5 + 1.0) / 2.0)
    assert hold_shares([]).captions is None
    assert hold_shares(CAPTIONS[-1:]).captions is None


def test_waiting_is_not_computation() -> None:
    assert computed_ms(CAPTIONS) == pytest.approx(4 * 500.0)


def test_unit_spans_give_back_the_words() -> None:
    text = " Ja, gut. "
    assert [text[start:end] for start, end in unit_spans(text, "de")] == ["Ja,", "gut."]
