"""The order in which updates may come."""

from __future__ import annotations

import pytest

from engine.asr.contract import Word
from engine.server.protocol import ProtocolFault, Tail, Update, WireWord
from engine.server.reception import Reception


def update(seq: int, utterance_id: int = 0, final: bool = False, clock_ms: float = 1e6, **fields: object) -> Update:
    words = fields.pop("words", [("hi", 0.0, 100.0)])
    return Update(
        type="update", seq=seq, utterance_id=utterance_id, words=words, clock_ms=clock_ms, is_final=final, **fields
    )  # type: ignore[arg-type]


def refused(reception: Reception, message: Update) -> str:
    with pytest.raises(ProtocolFault) as caught:
        reception.take(message)
    assert caught.value.fields["seq"] == message.seq
    return caught.value.code


def test_times_become_seconds_and_unknown_ones_are_filled() -> None:
    words: list[WireWord] = [("a", None, None), ("b", 500.0, 900.0), ("c", None, None)]
    utterance = Reception().take(update(1, words=words, tail=Tail(words=[("d", None, None)])))
    assert utterance is not None
    assert utterance.committed == (Word("a", 0, 0), Word("b", 0.5, 0.9), Word("c", 0.9, 0.9))
    assert utterance.tail == (Word("d", 0.9, 0.9),)


def test_a_final_has_no_tail() -> None:
    utterance = Reception().take(update(1, final=True, tail=Tail(words=[("d", None, None)])))
    assert utterance is not None
    assert utterance.tail == ()


def test_ids_follow_one_another_after_finals() -> None:
    reception = Reception()
    assert reception.take(update(1, 5)) is not None  # a client that reconnects counts on
    assert refused(reception, update(2, 6)) == "bad_protocol"
    assert refused(reception, update(3, 7)) == "bad_protocol"
    assert reception.take(update(4, 5, final=True)) is not None
    assert reception.take(update(5, 5)) is None
    assert reception.take(update(6, 5, final=True)) is not None
    assert refused(reception, update(7, 7)) == "bad_protocol"
    assert reception.take(update(8, 6)) is not None
    assert reception.take(update(9, 5)) is None
    assert refused(reception, update(10, 5, final=True)) == "bad_protocol"
    assert reception.take(update(11, 6)) is not None


def test_an_utterance_closed_by_the_server() -> None:
    reception = Reception()
    reception.take(update(1, 0))
    reception.closed(0)
    assert reception.take(update(2, 0)) is None
    assert reception.take(update(3, 1)) is not None
    reception.closed(0)
    assert refused(reception, update(4, 2)) == "bad_protocol"


def test_seq_grows() -> None:
    reception = Reception()
    reception.take(update(4))
    assert refused(reception, update(4)) == "bad_protocol"
    assert refused(reception, update(3)) == "bad_protocol"
    assert reception.take(update(9)) is not None


@pytest.mark.parametrize(
    "words",
    [
        [("a", 900.0, 100.0)],  # ends before it starts
        [("a", 5000.0, 5100.0), ("b", 1000.0, 1100.0)],  # out of order
        [("a", 0.0, 100.0), ("b", 90_000.0, 90_100.0)],  # behind the clock
    ],
)
def test_times_that_cannot_be(words: list[WireWord]) -> None:
    reception = Reception()
    assert refused(reception, update(1, words=words, clock_ms=20_000.0)) == "processing_failed"
    assert reception.take(update(2, clock_ms=20_000.0)) is not None


def test_the_clock_does_not_go_back() -> None:
    reception = Reception()
    reception.take(update(1, clock_ms=5000.0))
    assert refused(reception, update(2, clock_ms=4999.0)) == "processing_failed"
    assert reception.take(update(3, clock_ms=5000.0)) is not None


def test_a_refused_update_changes_nothing() -> None:
    reception = Reception()
    reception.take(update(1, 0, final=True, clock_ms=5000.0))
    assert refused(reception, update(2, 1, clock_ms=1.0)) == "processing_failed"
    assert reception.take(update(3, 1, clock_ms=5000.0)) is not None
