"""SRT and WebVTT of any transcript parse back with readers that we did not write."""

from __future__ import annotations

import html
import re
from itertools import pairwise

import pysubs2
import pytest
import srt
import webvtt
from hypothesis import given, settings
from hypothesis import strategies as st

from app.export import cues as cue_rules
from app.export import srt as srt_writer
from app.export import vtt as vtt_writer
from app.export.text import clean
from app.export.validate import validate_srt, validate_vtt
from app.session_record import SessionRecord, Utterance

WORDS = st.one_of(
    st.text(max_size=12),
    st.text(alphabet="abcdefgäöüß .,!?-", max_size=40),
    st.text(alphabet="你好世界。，、「」我们今天AB", max_size=60),
    st.sampled_from(
        [
            "-->",
            "<b>",
            "</i>",
            "&amp;",
            "{\\an8}",
            "1",
            "00:00:01,000 --> 00:00:02,000",
            "NOTE",
            "WEBVTT",
            "\n\n",
            "\r\n",
            "\u2028",
            "x" * 90,
            "👩‍👩‍👧‍👦",
            "한국어",
            "مرحبا",
            "e\u0301" * 50,
            "\u1100" * 50,
            "STYLE",
            "\u00a0!",
        ]
    ),
)
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)
TIMES = st.floats(min_value=0, max_value=40_000, allow_nan=False)
UTTERANCES = st.builds(
    Utterance, st.integers(0, 1000), TEXTS, TEXTS, TIMES, st.floats(min_value=0, max_value=40_000), st.booleans()
)
RECORDS = st.builds(lambda items: SessionRecord("s", utterances=tuple(items)), st.lists(UTTERANCES, max_size=12))
WHAT = st.sampled_from(["source", "target", "both"])


def squeezed(text: str) -> str:
    """Text without white space and without the joiner that defuses markup."""
    return re.sub(r"[\s\u2060]+", "", text)


def spoken(record: SessionRecord, what: str) -> str:
    """What must be found again; with both languages only as a bag of characters, since cues take turns."""
    ordered = sorted(record.utterances, key=lambda u: u.start_s)
    texts = [clean(t) for u in ordered for t in ((u.source, u.target) if what == "both" else (getattr(u, what),))]
    return squeezed("".join(texts))


def compare(found: str, record: SessionRecord, what: str) -> None:
    wanted = spoken(record, what)
    found = squeezed(found)
    assert (sorted(found) == sorted(wanted)) if what == "both" else (found == wanted)


@given(RECORDS, WHAT)
@settings(max_examples=60, deadline=None)
def test_srt_reads_back(record: SessionRecord, what: str) -> None:
    text = srt_writer.write(record, what)
    validate_srt(text)
    found = list(srt.parse(text))
    compare("".join(cue.content for cue in found), record, what)
    previous_end = 0.0
    for cue in found:
        start, end = cue.start.total_seconds(), cue.end.total_seconds()
        assert previous_end <= start < end
        previous_end = end


@given(RECORDS, WHAT)
@settings(max_examples=60, deadline=None)
def test_vtt_reads_back(record: SessionRecord, what: str) -> None:
    text = vtt_writer.write(record, what)
    validate_vtt(text)
    found = list(webvtt.from_string(text))
    compare("".join(html.unescape(cue.raw_text) for cue in found), record, what)
    previous_end = 0.0
    for cue in found:
        assert previous_end <= cue.start_in_seconds
        assert cue.start_time.in_milliseconds() < cue.end_time.in_milliseconds()
        previous_end = cue.end_in_seconds


@pytest.mark.parametrize(("writer", "kind"), [(srt_writer, "srt"), (vtt_writer, "vtt")])
@given(record=RECORDS, what=WHAT)
@settings(max_examples=40, deadline=None)
def test_pysubs2_finds_the_same_cues(writer: object, kind: str, record: SessionRecord, what: str) -> None:
    wanted = cue_rules.cues(record, what)
    text = (srt_writer if kind == "srt" else vtt_writer).write(record, what)
    if not wanted:
        return
    found = pysubs2.SSAFile.from_string(text, format_=kind)
    assert [(event.start, event.end) for event in found] == [(cue.start_ms, cue.end_ms) for cue in wanted]


@given(RECORDS, WHAT)
@settings(max_examples=60, deadline=None)
def test_rules_hold_for_any_transcript(record: SessionRecord, what: str) -> None:
    found = cue_rules.cues(record, what)
    for cue in found:
        assert 833 <= cue.end_ms - cue.start_ms <= 7000
        assert 1 <= len(cue.lines) <= 2
    for before, after in pairwise(found):
        assert before.end_ms <= after.start_ms
