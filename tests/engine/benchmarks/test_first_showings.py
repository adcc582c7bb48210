"""When words are first shown and committed, and which were wrong at first."""

from __future__ import annotations

from engine.asr.contract import Utterance, Word
from engine.benchmarks.first_showings import Showing, first_showings


def words(text: str) -> tuple[Word, ...]:
    return tuple(Word(word, at - 1.0, float(at)) for at, word in enumerate(text.split(), 1))


def state(at_s: float, committed: str, tail: str = "", final: bool = False) -> tuple[float, Utterance]:
    every = words(f"{committed} {tail}")
    count = len(committed.split())
    return at_s, Utterance(0, every[:count], every[count:], final)


def test_a_word_is_shown_in_the_tail_and_committed_later() -> None:
    states = [state(1.5, "", "We"), state(2.5, "we", "go"), state(3.0, "we go.", final=True)]
    assert first_showings(states) == [Showing(1.0, 1.5, 2.5, False), Showing(2.0, 2.5, 3.0, False)]


def test_another_word_in_its_place_is_wrong_only_if_it_came_first() -> None:
    states = [state(2.0, "", "we got"), state(3.0, "we", "go home"), state(4.0, "we go hole", final=True)]
    assert [showing.wrong for showing in first_showings(states)] == [False, True, True]
    states = [state(2.0, "", "we go"), state(3.0, "we", "got home"), state(4.0, "we go home", final=True)]
    assert [showing.wrong for showing in first_showings(states)] == [False, False, False]


def test_words_that_come_and_go_move_no_other() -> None:
    states = [state(2.0, "", "oh we go"), state(3.0, "we", "go home"), state(4.0, "we go home", final=True)]
    found = first_showings(states)
    assert [showing.shown_s for showing in found] == [2.0, 2.0, 3.0]
    assert not any(showing.wrong for showing in found)


def test_words_that_only_the_final_has_are_shown_with_it() -> None:
    assert first_showings([state(2.0, "we go", final=True)]) == [
        Showing(1.0, 2.0, 2.0, False),
        Showing(2.0, 2.0, 2.0, False),
    ]
    assert first_showings([state(2.0, "", "hm"), (3.0, Utterance(0, (), (), True))]) == []
