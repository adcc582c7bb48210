"""Links of words, from what an aligner says of pieces of words."""

from __future__ import annotations

import pytest

from engine.finetune.align import _of_words, _pieces, align
from engine.finetune.rows import Row


def test_elided_words_are_aligned_apart() -> None:
    assert _pieces("L'homme qu’il a vu, à 3.5 km !", "fr") == (
        ["l'", "homme", "qu’", "il", "a", "vu", "à", "3.5", "km"],
        [0, 0, 1, 1, 2, 3, 4, 5, 6],
    )


def test_agreed_links_come_first_and_single_ones_fill_in() -> None:
    forward, reverse = {(0, 0), (1, 1), (2, 2)}, {(0, 0), (2, 1), (3, 2)}
    assert _of_words([0, 1, 2, 2], [0, 1, 1, 2], forward, reverse, 4) == ((0,), (1, 2), (), ())


def test_eflomal_finds_words_that_recur() -> None:
    pytest.importorskip("eflomal")
    words = {"dog": "Hund", "cat": "Katze", "house": "Haus", "tree": "Baum", "river": "Fluss"}
    rows = []
    for first in words:
        for second in words:
            if first != second:
                texts = {"en": f"{first} then {second}", "de": f"{words[first]} dann {words[second]}"}
                other = dict.fromkeys(("fr", "es", "it"), texts["de"])
                rows.append(Row("file", 2, texts | other))
    links = align(rows)
    right = sum(links[row.row_id, "de"] == ((0,), (1,), (2,)) for row in rows)
    assert right >= 0.8 * len(rows)
