"""Frames made at random against a running server. `FUZZ_EXAMPLES=100000` makes a long run of it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from engine.alignatt.policy import Policy
from engine.server.protocol import BAD_PROTOCOL, PROCESSING_FAILED, UNSUPPORTED_DIRECTION
from engine.server.translation import Terms
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import WAIT_S, Client, Running, serving

# The server's threads make the payloads of their pings with `random`, also while an example is being drawn.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the .random. module inside strategies")

# what a server may say goodbye with: unreadable text, a broken rule, too much, try later
GOODBYES = {1002, 1007, 1008, 1009, 1013}
CODES = {BAD_PROTOCOL, PROCESSING_FAILED, UNSUPPORTED_DIRECTION}
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
LONG = EXAMPLES > 1000
# A long run looks for what is new and says it at once; a failing example is found again by its printed form.
SETTINGS: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "derandomize": not LONG,
    "database": None,
    "phases": [Phase.explicit, Phase.generate] if LONG else list(Phase),
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=10,
)
spoken = st.sampled_from(["we", "go", "home,", "today.", "é", "日本", "👩‍👩‍👧", "\u202e", "x" * 199])
times = st.none() | st.floats(0, 5000)
words = st.lists(st.tuples(spoken, times, times), max_size=12)
INIT = {"type": "init", "protocol_version": 1, "source_lang": "en", "target_lang": "de"}
inits = st.fixed_dictionaries(
    {name: st.just(value) for name, value in INIT.items()},
    optional={
        "overrides": st.dictionaries(
            st.sampled_from(
                ["partial_max_new_tokens", "max_history_utterances", "translation_alignatt_hold_back_target_units"]
            ),
            st.integers(-2, 20) | json_values,
        ),
        "history": st.lists(st.tuples(st.text(max_size=8), st.text(max_size=8)), max_size=3),
        "accepted_target_prefix": st.text(max_size=12),
        "context_text": st.text(max_size=30),
    },
)
updates = st.fixed_dictionaries(
    {
        "type": st.just("update"),
        "seq": st.integers(0, 40),
        "utterance_id": st.integers(0, 4),
        "words": words,
        "clock_ms": st.floats(0, 10_000),
        "is_final": st.booleans(),
    },
    optional={"tail": st.fixed_dictionaries({"words": words})},
)


def damaged(message: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from([*message, "tail"]), json_values, max_size=2).map(
        lambda changes: message | changes
    )


frames = st.one_of(
    updates.map(json.dumps),
    updates.flatmap(damaged).map(json.dumps),
    inits.flatmap(damaged).map(json.dumps),
    json_values.map(json.dumps),
    updates.map(json.dumps).flatmap(lambda text: st.integers(0, len(text)).map(lambda at: text[:at])),
    st.text(max_size=40),
    st.binary(max_size=40),
)


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with serving(ScriptedTranslator(), terms=Terms(Policy(), max_words=6), workers=2) as running:
        yield running


@pytest.fixture(scope="module")
def good(server: Running) -> Iterator[Good]:
    with Client(server.url) as client:
        client.init()
        yield Good(client)


class Good:
    """A client that behaves, beside all the others."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._utterance_id = 0

    def is_served(self) -> None:
        number = self._utterance_id
        self._utterance_id += 1
        partial = self._client.ask(f"a{number}", f"b{number}", utterance_id=number)
        assert (partial["committed_text"], partial["buffer_text"]) == (f"A{number}", f" B{number}")
        final = self._client.ask(f"a{number} b{number}", final=True, utterance_id=number)
        assert final["committed_text"] == f"A{number} B{number}"


@pytest.mark.timeout(0 if LONG else 120)
@settings(max_examples=EXAMPLES, **SETTINGS)
@given(init=st.none() | inits, sent=st.lists(frames, max_size=12))
def test_any_frames(server: Running, good: Good, init: dict[str, Any] | None, sent: list[str | bytes]) -> None:
    shown: dict[int, str] = {}
    if init is not None:
        sent = [json.dumps(init), *sent]
    with Client(server.url) as client, suppress(ConnectionClosed):
        for frame in sent:
            if isinstance(frame, str):
                frame = frame.encode("utf-8", "replace").decode()
            client.socket.send(frame)
        client.socket.send("the end")
        while not at_the_end(client, shown, accepted(sent)):
            pass
    closed = client.socket.protocol.close_rcvd
    assert closed is None or closed.code in GOODBYES | {1000}
    good.is_served()


def accepted(sent: list[str | bytes]) -> str:
    """The accepted prefix, if the first frame is an init that has one."""
    with suppress(ValueError, LookupError, TypeError):
        return json.loads(sent[0])["accepted_target_prefix"] or ""  # type: ignore[no-any-return]
    return ""


def at_the_end(client: Client, shown: dict[int, str], prefix: str) -> bool:
    """Check one message; whether it answers the frame that was sent last."""
    message = json.loads(client.socket.recv(timeout=WAIT_S))
    assert message["type"] in {"init_ok", "translation", "error"}
    if message["type"] == "error":
        assert message["code"] in CODES
        assert message["message"].endswith(".")
        return message["message"] == "The frame is not valid JSON."
    if message["type"] == "translation":
        before = shown.get(message["utterance_id"], "" if shown else prefix)
        assert before + message["committed_delta"] == message["committed_text"]
        shown[message["utterance_id"]] = message["committed_text"]
    return False


@pytest.mark.timeout(0 if LONG else 120)
@settings(max_examples=EXAMPLES // 2, **SETTINGS)
@given(st.lists(st.binary(max_size=60), max_size=4), st.booleans())
def test_any_bytes(server: Running, good: Good, sent: list[bytes], upgraded: bool) -> None:
    """On the bare connection, before and behind the handshake."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as bare, suppress(OSError):
        if upgraded:
            bare.sendall(
                b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
            )
            assert b"101" in bare.recv(4096)
        for part in sent:
            bare.sendall(part)
    good.is_served()
