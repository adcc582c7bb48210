"""What nobody said is left out: loops, repeated characters, and the echo of the context."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.asr.contract import Word
from engine.asr.guards import without_echo, without_loops, without_repeats
from tests.engine.asr.helpers import text, words


@pytest.mark.parametrize(
    ("heard", "kept"),
    [
        ("", ""),
        ("no no no no no", "no no no no no"),  # people do say that
        ("no no no no no no", "no"),
        ("no no no no no no no I said the next word", "no no no no no no no I said the next word"),
        ("0 0 0 0 0 0 5", "0 0 0 0 0 0 5"),
        ("we go No, no. no no no no", "we go No,"),
        ("well and so and so and so and so and so and so and", "well and so"),
        ("a b c d e f " * 6, "a b c d e f"),
        ("a b c d e f g " * 6, ("a b c d e f g " * 6).strip()),
    ],
)
def test_a_loop_is_heard_once_and_ends_the_text(heard: str, kept: str) -> None:
    assert text(without_loops(words(heard))) == kept


@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=30))
def test_what_is_kept_is_a_prefix_without_loops(names: list[str]) -> None:
    said = [Word(name, float(at), at + 1.0) for at, name in enumerate(names)]
    kept = without_loops(said)
    assert kept == said[: len(kept)]
    assert without_loops(kept) == kept


@pytest.mark.parametrize(
    ("heard", "kept"),
    [
        ("", ""),
        ("ha ha ha ha", "ha ha ha ha"),
        ("haha" * 9, "haha" * 9),  # eighteen times: people do laugh
        ("ha" * 20, "ha"),
        ("so " + "no " * 30 + "yes", "so no yes"),
        ("好" * 400, "好"),
        ("1" * 19, "1" * 19),
    ],
)
def test_characters_repeated_beyond_reason_are_kept_once(heard: str, kept: str) -> None:
    assert without_repeats(heard) == kept


def test_a_long_text_is_searched_for_repeats_in_no_time() -> None:
    started = time.process_time()
    without_repeats("".join(chr(97 + (number * number) % 7) for number in range(5000)))
    assert time.process_time() - started < 1.0


CONTEXT = "the heron of lake constance and its nest".split()


def test_the_context_in_no_time_at_all_is_an_echo() -> None:
    heard = [*words("we saw"), *words("The heron of Lake Constance,", 1.0, each_s=0.02), *words("today", 2.0)]
    assert text(without_echo(heard, CONTEXT)) == "we saw today"


def test_the_context_spoken_at_its_pace_stays() -> None:
    heard = words("the heron of lake constance", each_s=0.3)
    assert without_echo(heard, CONTEXT) == heard


def test_a_few_words_of_the_context_stay_however_fast() -> None:
    heard = words("of lake constance", each_s=0.0)
    assert without_echo(heard, CONTEXT) == heard
    assert without_echo(words("a b c d", each_s=0.0), []) == words("a b c d", each_s=0.0)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1)), max_size=30), st.text("abcdef", max_size=12))
def test_what_stays_of_an_echo_is_a_selection_in_order(said: list[tuple[str, float]], context: str) -> None:
    heard, at = [], 0.0
    for name, length in said:
        heard.append(Word(name, at, at + length))
        at += length
    kept = without_echo(heard, list(context))
    rest = iter(heard)
    assert all(any(word is one for one in rest) for word in kept)
