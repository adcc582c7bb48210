"""What never reaches the screen, and what must."""

from __future__ import annotations

import pytest

from engine.alignatt.clean import clean
from tests.engine.alignatt.helpers import make_draft


def cleaned(pieces: list[str], source: str = "some words", finish: str = "length") -> tuple[str, str]:
    draft = clean(make_draft(pieces, finish=finish), source.split())
    return draft.text, draft.finish


@pytest.mark.parametrize(
    ("pieces", "text", "finish"),
    [
        ([" Hallo", "<end_of_turn>"], " Hallo", "stop"),
        ([" Hallo", "<end", "_of", "_turn>", " Welt"], " Hallo", "stop"),
        ([" Hallo", "<end", "_of"], " Hallo", "length"),  # half-finished
        ([" Hallo", "<"], " Hallo", "length"),
        ([" Hallo", "<think>", " hm"], " Hallo", "stop"),
        ([" Hallo", "<|im_", "end|>"], " Hallo", "stop"),
        ([" Hallo", "<|im_"], " Hallo", "length"),
        ([" Hallo", "\n", "English:"], " Hallo", "stop"),
        ([" Hallo.", " Note", ":", " this"], " Hallo", "stop"),
        ([" a", " <", " b"], " a < b", "length"),  # a plain less-than sign
        ([" x", "<y"], " x<y", "length"),
    ],
)
def test_markers(pieces: list[str], text: str, finish: str) -> None:
    found, how = cleaned(pieces)
    assert how == finish
    assert found.rstrip(".") == text.rstrip(".")


def test_a_note_the_speaker_made_stays() -> None:
    assert cleaned([" Hinweis", ":", " hier"], "Note: here")[0] == " Hinweis: hier"


def test_a_loop_is_cut() -> None:
    text, finish = cleaned([" ja", ",", " gut"] * 6)
    assert text == " ja, gut" * 3
    assert finish == "stop"


@pytest.mark.parametrize("number", ["10000", "1000000", "1.000.000.000.000", "100'000'000'000", "9999999"])
def test_the_digits_of_a_number_are_no_loop(number: str) -> None:
    pieces = [" Das", " sind", " ", *number, " Euro", "."]
    assert cleaned(pieces, "That makes it", "stop") == (f" Das sind {number} Euro.", "stop")


def test_digits_without_end_are_a_loop() -> None:
    text, finish = cleaned([" ", *"0" * 60])
    assert len(text) < 30
    assert finish == "stop"


def test_a_loop_that_began_in_released_text_is_cut() -> None:
    draft = clean(make_draft([" ja"] * 4), ["yes"], released=[b" ja"] * 3)
    assert draft.text == ""


def test_a_real_refrain_survives() -> None:
    pieces = [" nein", ","] * 4 + [" nein"]
    assert cleaned(pieces, "no, no, no, no, no")[0] == "".join(pieces)
    assert cleaned([" Nein", ",", " nein", ",", " nein"], "No, no, no")[0] == " Nein, nein, nein"


def test_clean_is_idempotent_and_keeps_a_clean_draft() -> None:
    draft = make_draft([" alles", " gut"])
    assert clean(draft, ["all", "good"]) is draft
    looped = clean(make_draft([" ja"] * 9), ["yes"])
    assert clean(looped, ["yes"]) is looped
