from __future__ import annotations

import pytest

from app.export.cues import Cue, cues
from app.export.text import clean, columns, join, pieces
from app.export.validate import check_cues
from app.session_record import SessionRecord
from tests.app.captions import record

LONG = (
    "Wenn ein Satz so lang ist, dass er nicht auf den Schirm passt, wird er geteilt, und zwar möglichst dort, "
    "wo ein Teilsatz endet, damit man ihn in Ruhe lesen kann."
)


def texts(found: list[Cue]) -> list[str]:
    return [" ".join(cue.lines) for cue in found]


def test_a_short_utterance_is_one_cue_at_its_time() -> None:
    assert cues(record(("", "Guten Morgen.", 1.2344, 3.0006)), "target") == [Cue(1234, 3001, ("Guten Morgen.",))]


def test_a_long_utterance_is_divided_in_proportion() -> None:
    found = check_cues(cues(record(("", LONG, 10.0, 22.0)), "target"))
    assert " ".join(texts(found)) == LONG
    assert len(found) == 2
    assert (found[0].start_ms, found[-1].end_ms) == (10_000, 22_000)
    share = columns(texts(found)[0]) / columns(LONG)
    assert abs((found[0].end_ms - 10_000) / 12_000 - share) < 0.02
    assert texts(found)[0].endswith(",")


def test_slow_speech_is_divided_too_rather_than_vanish_early() -> None:
    found = check_cues(cues(record(("", "Eins zwei drei vier", 0.0, 13.0)), "target"))
    assert len(found) == 2
    assert found[-1].end_ms == 13_000


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([(1.0, 1.1)], [(1000, 1833)]),  # too short: the least time
        ([(1.0, 1.0)], [(1000, 1833)]),
        ([(5.0, 1.0)], [(5000, 5833)]),  # ends before it starts
        ([(0.0, 60.0)], [(0, 7000)]),  # one word cannot stand for a minute
        ([(0.0, 5.0), (3.0, 6.0)], [(0, 3000), (3000, 6000)]),  # overlap: cut by the next
        ([(3.0, 4.0), (0.0, 1.0)], [(0, 1000), (3000, 4000)]),  # out of order
        ([(0.0, 0.1), (0.1, 0.2), (4.0, 6.0)], [(0, 833), (833, 1666), (4000, 6000)]),  # dense, then back in time
        ([(-3.0, 1.0)], [(0, 1000)]),
    ],
)
def test_times(times: list[tuple[float, float]], expected: list[tuple[int, int]]) -> None:
    found = check_cues(cues(record(*(("", "Ja", a, b) for a, b in times)), "target"))
    assert [(cue.start_ms, cue.end_ms) for cue in found] == expected


def test_a_cue_stays_long_enough_to_be_read_where_there_is_room() -> None:
    text = "Das sind mehr als vierzig Zeichen in einer Zeile"
    (found,) = cues(record(("", text, 0.0, 1.0)), "target")
    assert found.end_ms == len(text) * 1000 // 17


def test_both_languages_share_a_cue() -> None:
    found = check_cues(
        cues(record(("Good morning.", "Guten Morgen.", 0.0, 2.0), ("Only source", "", 2.0, 4.0)), "both")
    )
    assert [cue.lines for cue in found] == [("Good morning.", "Guten Morgen."), ("Only source",)]


def test_chinese_breaks_without_blanks_and_not_before_a_full_stop() -> None:
    text = "我们今天讨论的是如何让字幕保持稳定，" * 4 + "谢谢大家。"
    found = check_cues(cues(record(("", text, 0.0, 20.0)), "target"))
    lines = [line for cue in found for line in cue.lines]
    assert "".join(lines) == text
    assert all(not line.startswith(("，", "。")) for line in lines)
    assert max(columns(line) for line in lines) <= 42


def test_right_to_left_emoji_and_long_words_survive() -> None:
    text = "مرحبا بالجميع 👩‍👩‍👧‍👦 " + "Donau" * 20 + " e\u0301te\u0301"
    found = check_cues(cues(record(("", text, 0.0, 20.0)), "target"))
    assert "".join("".join(cue.lines) for cue in found).replace(" ", "") == text.replace(" ", "")
    assert not any(line.startswith(("\u0301", "\u200d")) for cue in found for line in cue.lines)


def test_nothing_said_makes_no_cue() -> None:
    assert cues(SessionRecord("x"), "target") == []
    assert cues(record((" ", "\n", 0.0, 1.0)), "both") == []


def test_columns_and_cleaning() -> None:
    assert columns("ab你好e\u0301") == 7
    assert clean(" a\n\n b\u2028c\x00\ud800\x1b[1m ") == "a b c[1m"
    assert clean("Ah\u00a0!") == "Ah\u00a0!"
    assert join(pieces("한국어 문장 a你b", 42)) == "한국어 문장 a你b"
