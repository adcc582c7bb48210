"""Local agreement: what is compared, where new words begin, and what is committed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.asr.agreement import LocalAgreement, common_prefix, normalise, overlap
from engine.asr.contract import Word
from tests.engine.asr.helpers import text, words


@pytest.mark.parametrize(
    ("word", "compared"),
    [
        ("Hello,", "hello"),
        ("ill-disposed", "illdisposed"),
        ("“Straße!”", "strasse"),
        ("ﬁne", "fine"),
        ("３.５", "35"),
        ("don't", "dont"),
        ("हिन्दी।", "हिन्दी"),
        ("你好。", "你好"),
        ("—", "—"),
        (" % ", "%"),
    ],
)
def test_words_are_compared_by_letters_and_digits(word: str, compared: str) -> None:
    assert normalise(word) == compared


@pytest.mark.parametrize(
    ("first", "second", "shared"),
    [
        ("", "", 0),
        ("one two", "", 0),
        ("one two", "one two three", 2),
        ("One, two", "one two. three", 2),
        ("one two", "two one", 0),
        ("one — two", "one - two", 1),
    ],
)
def test_common_prefix(first: str, second: str, shared: int) -> None:
    assert common_prefix(words(first), words(second)) == shared


@pytest.mark.parametrize(
    ("committed", "hypothesis", "repeated"),
    [
        ("", "one two", 0),
        ("one two", "", 0),
        ("one two", "one two three", 2),
        ("one two", "one too three", 2),  # spelled differently
        ("one two three", "one _ three four", 2),  # a word was missed
        ("can not go", "_ cannot go on", 2),  # two words became one
        ("no no", "no no no", 2),  # the same word said again is a new word
    ],
)
def test_overlap_finds_where_new_words_begin(committed: str, hypothesis: str, repeated: int) -> None:
    assert overlap(words(committed), words(hypothesis)) == repeated


def test_times_alone_do_not_move_the_overlap() -> None:
    late = [Word(word.text, word.start_s + 0.3, word.end_s + 0.3) for word in words("we go home now")]
    assert overlap(words("we go"), late) == 2
    early = [Word(word.text, max(0.0, word.start_s - 0.3), word.end_s - 0.3) for word in words("we go home now")]
    assert overlap(words("we go"), early) == 2


def test_two_hypotheses_commit_what_they_share() -> None:
    agreement = LocalAgreement(0.3)
    assert agreement.insert(words("we go hole"), 2.0) == 0
    assert agreement.insert(words("We go, home today"), 3.0) == 2
    assert (text(agreement.committed), text(agreement.tail)) == ("We go,", "home today")
    assert agreement.insert(words("we go home today"), 3.0) == 2
    assert text(agreement.words) == "We go, home today"


def test_a_word_at_the_end_of_the_audio_waits() -> None:
    agreement = LocalAgreement(0.3)
    for _ in range(2):
        agreement.insert(words("one two"), 1.25)
    assert text(agreement.committed) == "one"
    agreement.insert(words("one two"), 1.3)
    assert text(agreement.committed) == "one two"


def test_the_newest_spelling_of_the_last_committed_word_is_known() -> None:
    agreement = LocalAgreement(0.0)
    for heard in ("we go", "we go", "we go. Then"):
        agreement.insert(words(heard), 5.0)
    assert text(agreement.committed) == "we go"
    assert agreement.last_heard == "go."
    agreement.take(2)
    assert agreement.last_heard is None


def test_an_empty_hypothesis_takes_the_tail_and_nothing_else() -> None:
    agreement = LocalAgreement(0.0)
    agreement.insert(words("one two"), 1.0)
    agreement.commit(1)
    agreement.insert([], 2.0)
    assert (text(agreement.committed), agreement.tail) == ("one", [])


WORDS = st.lists(
    st.builds(
        lambda name, start_s, length_s: Word(name, start_s, start_s + length_s),
        st.sampled_from("a b c A, b. — no".split()),
        st.floats(0, 20),
        st.floats(-1, 3),  # a decoder's end may even lie before its start
    ),
    max_size=8,
)


@given(st.lists(st.tuples(WORDS, st.floats(0, 2)), max_size=12), st.floats(0, 0.5))
def test_committed_words_never_change_and_times_never_fall(
    script: list[tuple[list[Word], float]], hold_back_s: float
) -> None:
    agreement, clock_s, before = LocalAgreement(hold_back_s), 0.0, []
    for hypothesis, step_s in script:
        clock_s += step_s
        count = agreement.insert(hypothesis, clock_s)
        assert agreement.committed[: len(before)] == before
        assert len(agreement.committed) == len(before) + count
        before = list(agreement.committed)
        edges = [edge for word in agreement.words for edge in (word.start_s, word.end_s)]
        assert edges == sorted(edges)
        assert all(0 <= edge <= clock_s for edge in edges)


@given(WORDS, WORDS)
def test_overlap_is_a_prefix_of_the_hypothesis(committed: list[Word], hypothesis: list[Word]) -> None:
    assert 0 <= overlap(committed, hypothesis) <= len(hypothesis)
