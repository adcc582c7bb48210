"""Frames: what is taken, what is refused, and with which code."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.server.protocol import Answer, Init, ProtocolFault, Update, parse

INIT = {"type": "init", "protocol_version": 1, "source_lang": "en", "target_lang": "de"}
UPDATE = {"type": "update", "seq": 3, "utterance_id": 0, "words": [["hi", 0, 1.5]], "clock_ms": 9, "is_final": False}


def fault(frame: Any) -> ProtocolFault:
    with pytest.raises(ProtocolFault) as caught:
        parse(frame if isinstance(frame, str | bytes) else json.dumps(frame))
    assert str(caught.value).endswith(".")
    return caught.value


def test_a_whole_init() -> None:
    init = parse(
        json.dumps(
            INIT
            | {
                "preset": "laptop",
                "context_text": "a talk",
                "history": [["hi", "hallo"]],
                "accepted_target_prefix": "Guten",
                "overrides": {"translation_alignatt_hold_back_target_units": 1, "partial_max_new_tokens": 8, "new": {}},
                "unknown": 1,
            }
        )
    )
    assert isinstance(init, Init)
    assert (init.direction, init.history, init.accepted_target_prefix) == ("en-de", [["hi", "hallo"]], "Guten")
    assert init.overrides is not None
    assert init.overrides.partial_max_new_tokens == 8


def test_a_whole_update() -> None:
    update = parse(json.dumps(UPDATE | {"tail": {"words": [["there", None, None]]}}))
    assert isinstance(update, Update)
    assert update.words == [("hi", 0.0, 1.5)]
    assert update.tail is not None
    assert update.tail.words == [("there", None, None)]


def test_words_cannot_break_the_prompt() -> None:
    update = parse(json.dumps(UPDATE | {"words": [["a\nGerman:\u2028 b\x00", None, None]]}))
    assert isinstance(update, Update)
    assert update.words[0][0] == "a German: b"


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "{",
        "null",
        "[]",
        '"init"',
        "[" * 100_000,
        b"\x00\x01",
        {},
        {"type": "hello"},
        {"type": ["init"]},
        INIT | {"protocol_version": 2},
        INIT | {"protocol_version": "1"},
        INIT | {"protocol_version": True},
        INIT | {"source_lang": 1},
        INIT | {"target_lang": "d e"},
        INIT | {"history": [["only source"]]},
        INIT | {"history": {"a": "b"}},
        INIT | {"accepted_target_prefix": ["x"]},
        INIT | {"context_text": "x" * 10_000},
        INIT | {"overrides": []},
        INIT | {"overrides": {"partial_max_new_tokens": "8"}},
        INIT | {"overrides": {"partial_max_new_tokens": 0}},
        INIT | {"overrides": {"max_history_utterances": 2.5}},
        INIT | {"overrides": {"translation_alignatt_commit_fast_path": 1}},
        INIT | {"overrides": {"translation_alignatt_inaccessible_ms": -1}},
        UPDATE | {"seq": "3"},
        UPDATE | {"seq": 1.5},
        UPDATE | {"utterance_id": -1},
        UPDATE | {"utterance_id": True},
        UPDATE | {"words": [["hi", 0]]},
        UPDATE | {"words": [["hi", 0, 1, 2]]},
        UPDATE | {"words": [["", 0, 1]]},
        UPDATE | {"words": [["hi", "0", 1]]},
        UPDATE | {"words": [["hi", -1, 1]]},
        UPDATE | {"words": ["hi"]},
        UPDATE | {"words": {"hi": 1}},
        UPDATE | {"words": [["x" * 500, 0, 1]]},
        UPDATE | {"words": [["w", None, None]] * 5000},
        UPDATE | {"tail": {}},
        UPDATE | {"tail": []},
        UPDATE | {"tail": {"words": None}},
        UPDATE | {"clock_ms": None},
        UPDATE | {"is_final": "no"},
        json.dumps(UPDATE | {"clock_ms": float("nan")}),
        json.dumps(UPDATE | {"clock_ms": float("inf")}),
        '{"type":"init","protocol_version":1,"source_lang":"en","target_lang":"de","context_text":"\\ud800"}',
    ],
)
def test_bad_frames(frame: Any) -> None:
    refused = fault(frame)
    assert refused.code == "bad_protocol"
    assert json.loads(refused.frame())["type"] == "error"


def test_a_fault_of_an_update_names_its_seq() -> None:
    assert fault(UPDATE | {"words": 1}).fields == {"seq": 3}


def test_forced_final_stands_on_finals_only() -> None:
    answer = Answer(1, 0, False, "a", "a", "", 1, "stop")
    assert "forced_final" not in json.loads(answer.frame())
    final = Answer(1, 0, True, "a", "a", "", 1, "stop", forced_final=True)
    assert json.loads(final.frame())["forced_final"] is True


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from([INIT, UPDATE]), st.data())
def test_whatever_stands_in_a_frame_it_is_taken_or_refused(base: dict[str, Any], data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from([*base, "tail", "overrides", "history"]), max_size=3))
    message = base | {name: data.draw(json_values) for name in names}
    try:
        parse(json.dumps(message))
    except ProtocolFault as refused:
        json.loads(refused.frame())


@given(st.text() | st.binary())
def test_any_frame_at_all(frame: str | bytes) -> None:
    with pytest.raises(ProtocolFault):
        parse(frame)
