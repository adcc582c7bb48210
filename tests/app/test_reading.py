"""The lines of a session as a person reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reading import CHANGED, INSERTED, RESET, Change, Reading, clock, parse_clock
from tests.app.captions import record

TALK = record(("Good morning.", "Guten Morgen.", 0.5, 1.5), ("The WEATHER", "Das Wetter", 2.0, 4.0), ("x", "ß", 9, 10))


def row(kind: str, utterance_id: int, target: str, start_s: float = 0.0, source: str = "") -> dict[str, object]:
    return {
        "type": kind,
        "utterance_id": utterance_id,
        "source": source,
        "target": target,
        "start_s": start_s,
        "end_s": start_s + 1,
    }


def test_it_grows_with_the_journal() -> None:
    reading, heard = Reading(), []
    reading.changed.subscribe(heard.append)
    reading.apply({"type": "session"})
    reading.apply(row("stable", 0, "Guten"))
    reading.apply(row("stable", 2, "Später", 5.0))
    reading.apply(row("final", 1, "Dazwischen", 2.0))
    reading.apply(row("final", 0, "Guten Morgen."))
    reading.apply(row("final", 3, "  "))
    reading.apply({"type": "gap", "start_s": 1.0, "end_s": 2.0})
    reading.apply({"type": "end", "audio_s": 9.0, "reason": ""})
    assert [utterance.target for utterance in reading.rows] == ["Guten Morgen.", "Dazwischen", "Später"]
    assert heard == [Change(RESET), Change(INSERTED, 0), Change(INSERTED, 1), Change(INSERTED, 1), Change(CHANGED, 0)]


def test_search_is_in_both_languages_and_any_case() -> None:
    reading = Reading(TALK)
    assert reading.search("weather") == [1]
    assert reading.search("WETTER") == [1]
    assert reading.search("o") == [0]
    assert reading.search("SS") == [2]
    assert reading.search("") == []
    assert reading.search("nothing") == []


def test_composed_and_decomposed_letters_are_the_same() -> None:
    reading = Reading(record(("a", "Zu\u0308rich", 0, 1)))
    assert reading.search("Zürich") == [0]


@pytest.mark.parametrize(("seconds", "expected"), [(0, 0), (0.5, 0), (1.9, 0), (2.0, 1), (8, 1), (1e9, 2)])
def test_a_time_leads_to_what_is_spoken_then(seconds: float, expected: int) -> None:
    assert Reading(TALK).at_time(seconds) == expected


def test_an_empty_session_has_no_places() -> None:
    reading = Reading()
    assert (reading.at_time(5), reading.next_mark(-1), reading.text([], "both")) == (-1, -1, "")


def test_bookmarks_go_round() -> None:
    reading, heard = Reading(TALK), []
    reading.changed.subscribe(heard.append)
    reading.apply({"type": "bookmark", "utterance_id": 2, "on": True})
    reading.mark(0, True)
    reading.mark(77, True)
    assert heard == [Change(CHANGED, 2), Change(CHANGED, 0)]
    assert [reading.marked(index) for index in range(3)] == [True, False, True]
    assert [reading.next_mark(index) for index in (-1, 0, 2)] == [0, 2, 0]
    reading.mark(0, False)
    assert not reading.marked(0)


def test_copied_text_is_one_line_a_row() -> None:
    reading = Reading(record(("a\nb", "c\td", 0, 1), ("e", "f", 1, 2)))
    assert reading.text([1, 0, 1], "both") == "a b\tc d\ne\tf"
    assert reading.text([0], "source") == "a b"
    assert reading.text([1], "target") == "f"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1:02:03", 3723), ("2:03", 123), ("90", 90), (" 1:30.5 ", 90.5), ("1:30,5", 90.5), ("0", 0)],
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_clock(text) == seconds


@pytest.mark.parametrize("text", ["", "x", "1:2:3:4", "-1", "nan", "inf", "1e9", ":", "1::2"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert parse_clock(text) is None


@given(st.integers(0, 10**7))
def test_the_clock_reads_back(seconds: int) -> None:
    if seconds < 360_000:
        assert parse_clock(clock(seconds)) == seconds
    assert clock(-5) == "0:00:00"
