"""The process boundary: what crosses it is plain, numbered, and refused with one sentence when it does not belong."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import messages
from engine.messages import (
    PROTOCOL_VERSION,
    Audio,
    Command,
    Envelope,
    Error,
    Event,
    MessagesLost,
    Numberer,
    Probe,
    ProtocolError,
    Receiver,
    Start,
    Stop,
    Stopped,
)

VALUES: dict[str, Any] = {"str": "x", "int": 1, "float": 1.0, "bool": True, "bytes": b"\0\0\0\0"}


def instance(kind: type) -> Any:
    """A message with every field that has no default filled in."""
    wanted = [f for f in dataclasses.fields(kind) if f.default is f.default_factory is dataclasses.MISSING]
    return kind(**{f.name: VALUES.get(str(f.type)) for f in wanted})


ALL = [
    kind
    for kind in vars(messages).values()
    if isinstance(kind, type) and issubclass(kind, (Command, Event)) and kind not in (Command, Event)
]


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_message_crosses_unchanged(kind: type) -> None:
    body = instance(kind)
    envelope = pickle.loads(pickle.dumps(Numberer().wrap(body)))
    assert envelope == Envelope(PROTOCOL_VERSION, 0, body)
    assert Receiver(kind.__bases__[0]).unwrap(envelope) == body
    assert kind.__bases__ in ((Command,), (Event,))
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


def test_every_message_is_documented() -> None:
    assert len(ALL) >= 15
    assert all(kind.__doc__ and kind.__doc__.strip().endswith((".", "`")) for kind in ALL)


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (None, "Expected an envelope on the engine queue, got NoneType."),
        (Probe(), "Expected an envelope on the engine queue, got Probe."),
        (Envelope(99, 0, Probe()), f"The other side speaks protocol 99, this one {PROTOCOL_VERSION}."),
        (Envelope(PROTOCOL_VERSION, 0, Error("a", "b")), "Error does not travel in this direction."),
        (Envelope(PROTOCOL_VERSION, 0, "stop"), "str does not travel in this direction."),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_belong_is_refused_and_changes_nothing(item: object, sentence: str) -> None:
    receiver, numberer = Receiver(Command), Numberer()
    with pytest.raises(ProtocolError) as caught:
        receiver.unwrap(item)
    assert str(caught.value) == sentence
    assert receiver.unwrap(numberer.wrap(Probe())) == Probe()


def test_a_hole_is_one_error_with_the_message_behind_it() -> None:
    receiver = Receiver(Command)
    receiver.unwrap(Envelope(PROTOCOL_VERSION, 0, Start("one")))
    with pytest.raises(MessagesLost, match=r"^2 message\(s\) before number 3 were lost\.$") as caught:
        receiver.unwrap(Envelope(PROTOCOL_VERSION, 3, Stop()))
    assert caught.value.body == Stop()
    assert receiver.unwrap(Envelope(PROTOCOL_VERSION, 4, Probe())) == Probe()
    with pytest.raises(ProtocolError, match="twice or late"):
        receiver.unwrap(Envelope(PROTOCOL_VERSION, 4, Probe()))


@given(st.lists(st.booleans(), max_size=30))
def test_every_message_that_arrives_is_used_and_every_hole_is_said(arrives: list[bool]) -> None:
    numberer, receiver = Numberer(), Receiver(Event)
    taken, lost = [], 0
    for number, there in enumerate(arrives):
        envelope = numberer.wrap(Stopped(str(number), 0.0, 0.0))
        if not there:
            continue
        try:
            body: Command | Event = receiver.unwrap(envelope)
        except MessagesLost as error:
            body, lost = error.body, lost + 1
        taken.append(body)
    assert [event.session_id for event in taken if isinstance(event, Stopped)] == [
        str(number) for number, there in enumerate(arrives) if there
    ]
    holes = sum(1 for before, there in zip([True, *arrives], arrives, strict=False) if there and not before)
    assert lost == holes


def test_sound_is_bytes_and_no_array() -> None:
    assert isinstance(instance(Audio).pcm, bytes)
