"""Simulated recognition: tail first, committed later, closed at the end."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.evaluation.recognition import (
    Step,
    Timing,
    misheard_words,
    recognise,
    timed_words,
    vocabulary_of,
)

WORDS = timed_words(["we", "go", "home"], 10.0, 3.0)


def shown(step: Step) -> tuple[float, str, str, bool]:
    utterance = step.utterance
    texts = [" ".join(word.text for word in words) for words in (utterance.committed, utterance.tail)]
    return step.clock_s, texts[0], texts[1], utterance.final


def test_every_word_is_heard_first_and_committed_later() -> None:
    assert [shown(step) for step in recognise(4, WORDS, Timing(0.25, 0.5))] == [
        (11.25, "", "we", False),
        (11.75, "we", "", False),
        (12.25, "we", "go", False),
        (12.75, "we go", "", False),
        (13.25, "we go", "home", False),
        (13.75, "we go home", "", True),
    ]


def test_steps_report_at_whole_intervals_of_the_utterance() -> None:
    steps = list(recognise(0, WORDS, Timing(0.25, 1.0, step_s=1.5)))
    assert [shown(step) for step in steps] == [
        (11.5, "", "we", False),
        (13.0, "we", "go", False),
        (14.25, "we go home", "", True),
    ]


def test_words_share_the_time_evenly() -> None:
    assert [(word.start_s, word.end_s) for word in WORDS] == [(10.0, 11.0), (11.0, 12.0), (12.0, 13.0)]
    assert list(recognise(0, timed_words([], 0.0, 1.0), Timing())) == []


def test_a_misheard_word_is_right_the_second_time_and_committed_later() -> None:
    steps = recognise(0, WORDS, Timing(0.0, 1.0, step_s=1.0), {1: "got"})
    assert [shown(step) for step in steps] == [
        (11.0, "", "we", False),
        (12.0, "we", "got", False),
        (13.0, "we", "go home", False),
        (14.0, "we go home", "", True),
    ]


def test_words_are_misheard_as_others_that_begin_alike_at_the_given_rate() -> None:
    vocabulary = vocabulary_of(["we go home", "we got here"], "en")
    assert vocabulary == ("go", "got", "here", "home", "we")
    assert misheard_words(["go", "home"], 1.0, vocabulary, "seed") == {0: "got", 1: "here"}
    assert misheard_words(["go"], 0.0, vocabulary, "seed") == {}
    assert misheard_words(["go"], 1.0, ["go"], "seed") == {}
    many = misheard_words(["go"] * 2000, 0.3, vocabulary, "seed")
    assert many == misheard_words(["go"] * 2000, 0.3, vocabulary, "seed")
    assert 500 < len(many) < 700


@settings(deadline=None)
@given(
    st.integers(1, 12),
    st.floats(0, 2),
    st.floats(0, 3),
    st.sampled_from([0.0, 0.5, 1.0, 2.5]),
    st.floats(0.1, 10),
    st.sets(st.integers(0, 11)),
)
def test_committed_words_only_grow_and_the_last_state_is_final(
    count: int, delay_s: float, commit_s: float, step_s: float, duration_s: float, wrong: set[int]
) -> None:
    words = timed_words([str(at) for at in range(count)], 1.0, duration_s)
    misheard = {at: "?" for at in wrong if at < count}
    steps = list(recognise(0, words, Timing(delay_s, commit_s, step_s), misheard))
    assert [step.utterance.final for step in steps] == [False] * (len(steps) - 1) + [True]
    assert steps[-1].utterance.committed == words
    assert not steps[-1].utterance.tail
    for before, after in pairwise(steps):
        assert before.clock_s <= after.clock_s
        assert after.utterance.committed[: len(before.utterance.committed)] == before.utterance.committed
    for step in steps:
        heard = (*step.utterance.committed, *step.utterance.tail)
        assert step.utterance.committed == words[: len(step.utterance.committed)]
        assert [word.end_s for word in heard] == [word.end_s for word in words[: len(heard)]]
        assert all(word.end_s <= step.clock_s + 1e-3 for word in heard)
