"""Sentences left in the source language, and words of half sentences that the whole does not confirm."""

from __future__ import annotations

import pytest

from engine.finetune.scores import unconfirmed, untranslated


@pytest.mark.parametrize(
    ("hypothesis", "left"),
    [
        ("The new model is small.", True),
        ("Das new model is small.", True),
        ("Das neue Modell ist small.", False),
        ("Das neue Modell ist klein.", False),
        ("", True),
        ("...", True),
    ],
)
def test_untranslated(hypothesis: str, left: bool) -> None:
    assert untranslated("The new model is small.", hypothesis, "Das neue Modell ist klein.") is left


def test_names_and_terms_are_no_english() -> None:
    assert not untranslated(
        "Peter sent ChatGPT to Berlin.", "Peter ChatGPT Berlin", "Peter schickte ChatGPT nach Berlin."
    )


def test_unconfirmed_words() -> None:
    half = ["Ich habe gestern ein Auto gesehen", "Guten Morgen", ""]
    whole = ["Ich habe gestern das Auto gekauft.", "guten Morgen, alle zusammen.", "Ja."]
    assert unconfirmed(half, whole) == (8, 3, 2)
