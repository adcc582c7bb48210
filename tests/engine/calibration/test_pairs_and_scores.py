"""Pairs, links in source units, and scores of heads counted by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.calibration.align import eflomal, given
from engine.calibration.pairs import Link, Pair, PairError, Span, read_pairs, unit_links, without
from engine.calibration.score import Hits, pair_hits, shares, split, stability

ROW = {
    "source_text": "So what is our solution?",
    "target_text": "Was ist also unsere Lösung?",
    "source_words": ["So", "what", "is", "our", "solution", "?"],
    "target_words": ["Was", "ist", "also", "unsere", "Lösung", "?"],
    "alignments": [[4, 5, 4, 5, 1.0], [0, 1, 2, 3, 0.9]],
}


def write(path: Path, *rows: object) -> Path:
    file = path / "pairs.jsonl"
    file.write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows), encoding="utf-8")
    return file


def test_links_become_source_units(tmp_path: Path) -> None:
    (pair,) = read_pairs(write(tmp_path, ROW, ROW))
    links = unit_links(pair, "en")
    assert links.units == ("So", "what", "is", "our", "solution?")
    assert [(pair.target[span.start : span.end], units) for span, units in links.linked] == [
        ("Lösung", frozenset({4})),
        ("also", frozenset({0})),
    ]


def test_tab_separated_pairs(tmp_path: Path) -> None:
    assert read_pairs(write(tmp_path, "one\teins", "", "two\tzwei")) == [Pair("one", "eins"), Pair("two", "zwei")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("one", "Line 1 is not a source and a target"),
        ("one\t", "Line 1 is not a source and a target"),
        ("{", "Line 1 is not a pair"),
        ({**ROW, "target_text": " "}, "Line 1 has an empty side"),
        ({**ROW, "source_words": ["So", "why"]}, "alignments do not match their words"),
        ({**ROW, "alignments": [[4, 9, 4, 5, 1.0]]}, "source words 4 to 9 of 6"),
        ({**ROW, "alignments": [[4, 5, 5, 5, 1.0]]}, "target words 5 to 5 of 6"),
        ({**ROW, "alignments": [[4]]}, "alignments do not match their words"),
        ("", "holds no pairs"),
    ],
)
def test_bad_pairs_are_one_sentence(tmp_path: Path, row: object, message: str) -> None:
    with pytest.raises(PairError, match=message):
        read_pairs(write(tmp_path, row))


def test_sentences_can_be_left_out() -> None:
    pairs = [Pair("One  two", "a"), Pair("Three", "b")]
    assert without(pairs, ["one two "]) == [pairs[1]]


def test_a_head_scores_where_it_looks_at_the_aligned_unit() -> None:
    pair = Pair("we go home", "wir gehen", (Link(Span(0, 2), Span(0, 3)), Link(Span(3, 5), Span(4, 9))))
    pieces = [b" wir", b" geh", b"en"]
    rows = np.zeros((3, 3, 3), np.float32)
    rows[0, [0, 1, 2], [0, 1, 1]] = 1  # right three times
    rows[1, [0, 1, 2], [0, 2, 1]] = 1  # right twice
    rows[2] = np.nan  # never delivered: a miss, not a hit on unit 0
    rows[2, 1, 1] = 0.2
    hits = pair_hits(rows, pieces, pair.target, unit_links(pair, "en"))
    assert (hits.tokens, hits.hits.tolist()) == (3, [3, 2, 1])
    assert shares([hits, hits]).tolist() == [1, 2 / 3, 1 / 3]


def test_tokens_inside_a_character_and_unaligned_tokens_do_not_count() -> None:
    pair = Pair("a b", "ü x", (Link(Span(0, 1), Span(0, 1)),))
    data = " ü x".encode()
    pieces = [data[:2], data[2:3], data[3:]]
    hits = pair_hits(np.ones((1, 3, 2), np.float32), pieces, pair.target, unit_links(pair, "en"))
    assert hits.tokens == 1


def test_shares_of_nothing_are_refused() -> None:
    with pytest.raises(PairError, match="no aligned tokens"):
        shares([Hits(np.zeros(2, np.int64), 0)])


def test_the_split_is_disjoint_seeded_and_complete() -> None:
    ranked, held_out = split(10, 0.3, 1)
    assert sorted(ranked + held_out) == list(range(10))
    assert len(held_out) == 3
    assert split(10, 0.3, 1) == (ranked, held_out)


def test_stability_of_equal_halves() -> None:
    pairs = [Hits(np.arange(12), 12) for _ in range(8)]
    found = stability(pairs, 3)
    assert (found.agree, found.largest_difference) == (8, 0.0)


def test_given_alignments_must_be_there() -> None:
    with pytest.raises(PairError, match="eflomal"):
        given([Pair("a", "b")])


def test_eflomal_finds_content_words() -> None:
    letters = "bcdfghklmnprstvw"
    nouns = {f"{a}{b}ea": f"{b}{a}uo" for a in letters for b in letters if a < b}
    names = list(nouns)
    pairs = [
        Pair(f"the {a} sees the {b} now", f"der {nouns[a]} sieht den {nouns[b]} jetzt")
        for a in names[:20]
        for b in names[20:40]
    ]
    right = total = 0
    for pair in eflomal(pairs):
        for link in pair.links or ():
            source = pair.source[link.source.start : link.source.end]
            target = pair.target[link.target.start : link.target.end]
            if source in nouns:
                total += 1
                right += nouns[source] == target
    assert total > 100
    assert right / total > 0.8


def test_a_few_mismatched_pairs_are_left_out_and_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{**ROW, "source_text": f"So what is our solution? {at}"} for at in range(20)]
    rows[3] = {**rows[3], "source_words": ["So", "why"]}
    assert len(read_pairs(write(tmp_path, *rows))) == 19
    assert "1 pairs" in caplog.text
    assert "Line 4" in caplog.text


def test_quotation_marks_may_differ(tmp_path: Path) -> None:
    row = {**ROW, "source_words": ['"So', "what", "is", "our", "solution", "?"]}
    (pair,) = read_pairs(write(tmp_path, row))
    assert pair.links is not None
    assert pair.links[1].source == Span(0, 2)
