"""Where drafts may be cut."""

from __future__ import annotations

import pytest

from engine.alignatt.boundaries import safe_cuts, word_starts


def encode(pieces: list[str]) -> list[bytes]:
    return [piece.encode() for piece in pieces]


@pytest.mark.parametrize(
    ("pieces", "limit", "finish", "expected"),
    [
        ([" Wort", "schatz", " ist"], 1, "length", 0),  # inside a word
        ([" Wort", "schatz", " ist"], 2, "length", 2),
        ([" Wort", "schatz", " ist"], 3, "length", 2),  # the last word may go on
        ([" Wort", "schatz", " ist"], 3, "stop", 3),  # the model has ended it
        ([" Haus", ".", " Dann"], 2, "length", 2),  # a sentence mark inside the draft
        ([" Haus", "."], 2, "stop", 1),  # the closing mark of an open utterance stays held
        ([" Haus", ".", "“"], 3, "stop", 1),
        ([" Haus", "."], 2, "length", 0),
        ([" Haus", ".", " "], 3, "stop", 1),  # a space behind the mark changes nothing
        ([" Haus", " "], 2, "length", 1),
        ([" 3", ".", "5", " Meter"], 1, "length", 0),
        ([" 3", ".", "5", " Meter"], 2, "length", 0),
        ([" am", " 3", "."], 3, "stop", 2),
        (["我们", "今天", "回家"], 2, "length", 2),
        (["我们", "今天", "回家", "。"], 4, "stop", 3),
        (["使用", "Align", "Att", "算法"], 2, "length", 1),  # Latin inside Chinese stays whole
        (["使用", "Align", "Att", "算法"], 3, "length", 3),
        ([" ก", "\u0e33"], 1, "length", 0),  # a Thai vowel sign belongs to its consonant
        ([" "], 1, "stop", 0),  # nothing but a space is nothing
        ([], 0, "stop", 0),
    ],
)
def test_safe_cuts(pieces: list[str], limit: int, finish: str, expected: int) -> None:
    assert safe_cuts(encode(pieces), finish)[limit] == expected


def test_a_character_split_over_tokens_is_not_cut() -> None:
    emoji = " 🙂".encode()
    pieces = [b" gut", emoji[:3], emoji[3:], b" und"]
    assert safe_cuts(pieces, "length")[:5] == (0, 1, 1, 3, 3)


def test_an_unfinished_character_at_the_end_is_never_released() -> None:
    assert safe_cuts([b" gut", " ü".encode()[:2]], "stop")[2] == 1


def test_word_starts() -> None:
    assert word_starts(encode([" Wort", "schatz", " ist", " groß", "."])) == [0, 2, 3]
    assert word_starts(encode(["我们", "今天", "。"])) == [0, 1, 2]
    assert word_starts([]) == []
