"""How much of a translation a cut-off source supports."""

from __future__ import annotations

import pytest

from engine.finetune.align import Linked
from engine.finetune.cut import heard, supported

# I saw the red car yesterday evening. -> Ich habe gestern Abend das rote Auto gesehen.
GERMAN = Linked(
    ("I", "saw", "the", "red", "car", "yesterday", "evening."),
    ("Ich", "habe", "gestern", "Abend", "das", "rote", "Auto", "gesehen."),
    ((0,), (1,), (5,), (6,), (2,), (3,), (4,), (1,)),
)
# -> J'ai vu la voiture rouge hier soir.
FRENCH = Linked(
    GERMAN.source,
    ("J'ai", "vu", "la", "voiture", "rouge", "hier", "soir."),
    ((0,), (1,), (2,), (4,), (3,), (5,), (6,)),
)


@pytest.mark.parametrize(
    ("cut", "words"),
    [(1, 1), (2, 2), (3, 2), (4, 2), (5, 2), (6, 3), (7, 8)],
)
def test_a_translation_is_cut_at_the_first_word_that_was_not_heard(cut: int, words: int) -> None:
    assert supported(GERMAN, cut, "de") == words


@pytest.mark.parametrize(("cut", "words"), [(2, 2), (3, 2), (4, 2), (5, 5), (6, 6), (7, 7)])
def test_an_article_waits_for_its_noun(cut: int, words: int) -> None:
    assert supported(FRENCH, cut, "fr") == words


def test_words_without_links_follow_what_comes_behind_them() -> None:
    pair = Linked(("He", "really", "works", "hard"), ("Er", "arbeitet", "ja", "hart"), ((0,), (2,), (), (3,)))
    assert [supported(pair, cut, "de") for cut in (1, 3, 4)] == [1, 2, 4]


def test_the_last_source_words_may_say_nothing_yet() -> None:
    assert heard(("We", "looked", "at", "the"), 4) == 2
    assert heard(("We", "looked"), 0) == 0
