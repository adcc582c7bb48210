from __future__ import annotations

import pytest

from engine.benchmarks.translation_faults import contradiction, copied_share, untranslated

SOURCE = "Last week we opened a new library in Berlin."
REFERENCE = "Letzte Woche haben wir in Berlin eine neue Bibliothek eröffnet."


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (SOURCE, True),
        ("last week, we opened the new library in Berlin", True),
        ("", True),
        (" … ", True),
        (REFERENCE, False),
        ("Letzte Woche opened wir a new Bibliothek in Berlin.", False),
    ],
)
def test_untranslated(output: str, expected: bool) -> None:
    assert untranslated(output, SOURCE, REFERENCE) is expected


def test_what_is_the_same_in_both_languages_is_translated() -> None:
    assert not untranslated("Berlin, 2024!", "Berlin, 2024!", "Berlin 2024.")
    assert not untranslated("", "Uh.", "…")


def test_a_source_word_is_used_once() -> None:
    assert copied_share("new new new library", SOURCE) == 0.5
    assert copied_share("", SOURCE) == 0


def test_released_words_that_the_final_lacks_are_contradicted() -> None:
    found = contradiction("Letzte Woche wurde das Museum", REFERENCE)
    assert (found.released, found.contradicted) == (4, ("wurd", "muse"))
    assert contradiction("Letzte Woche haben wir", REFERENCE).contradicted == ()


def test_inflection_and_short_words_contradict_nothing() -> None:
    assert contradiction("in der neuen Bibliotheken", "die neue Bibliothek").contradicted == ()
    assert contradiction("la nuova biblioteca", "il nuovo museo").contradicted == ("bibl",)


def test_a_word_released_twice_must_stand_there_twice() -> None:
    assert contradiction("sehr sehr gut", "sehr gut").contradicted == ("sehr",)
    assert contradiction("sehr sehr gut", "sehr, sehr gut").contradicted == ()


def test_figures_count_as_content() -> None:
    assert contradiction("um 6 Uhr", "um 7 Uhr").contradicted == ("6",)


def test_any_of_the_finals_confirms() -> None:
    assert contradiction("das alte Museum", "die Bibliothek", "das alte Museum").contradicted == ()
    assert contradiction("", "die Bibliothek").released == 0
