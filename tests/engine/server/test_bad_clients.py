"""Clients that do everything wrong: each gets an error frame or a clean close, and the others do not notice."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from engine.server.connection import MAX_BAD_FRAMES, Timeouts
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import WAIT_S, Client, Running, serving
from tests.engine.server.test_server import Gated, wait_until


@pytest.fixture
def server() -> Iterator[Running]:
    with serving(ScriptedTranslator()) as running:
        yield running


@pytest.fixture
def good(server: Running) -> Iterator[Client]:
    """A client beside the bad ones; at the end it still gets its translation."""
    with Client(server.url) as client:
        client.init()
        client.ask("we go", "home")
        yield client
        assert client.ask("we go home")["committed_text"] == "WE GO HOME"


def close_code(client: Client) -> int:
    """Read to the end of the connection."""
    try:
        while True:
            client.socket.recv(timeout=WAIT_S)
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else 1006


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"protocol_version": 2}, "bad_protocol"),
        ({"target_lang": "ja"}, "unsupported_direction"),
        ({"preset": "no such preset"}, "bad_protocol"),
        ({"overrides": {"partial_max_new_tokens": "many"}}, "bad_protocol"),
        ({"history": 1}, "bad_protocol"),
    ],
)
def test_bad_inits(server: Running, good: Client, fields: dict[str, Any], code: str) -> None:
    with Client(server.url) as client:
        answer = client.init(**fields)
        assert (answer["type"], answer["code"]) == ("error", code)
        assert answer.get("supported") == (["en-de", "en-fr"] if code == "unsupported_direction" else None)
        assert close_code(client) == 1008


@pytest.mark.parametrize("frame", ["not json", "{}", b"\x00", '{"type":"update"}', "[" * 5000])
def test_whatever_comes_before_the_init(server: Running, good: Client, frame: str | bytes) -> None:
    with Client(server.url) as client:
        client.send(frame)
        assert client.receive()["code"] == "bad_protocol"
        assert close_code(client) == 1008


def test_a_refused_client_that_talks_on_is_gone_at_once(server: Running, good: Client) -> None:
    with Client(server.url) as client:
        with suppress(ConnectionClosed):  # the refusal may be faster than the last of these
            for _ in range(30):  # more than the server reads ahead
                client.send("{}")
        assert close_code(client) == 1008
    assert server.metric("rejected_total", reason="bad_protocol") == 1


def test_an_update_before_init(server: Running, good: Client) -> None:
    with Client(server.url) as client:
        client.update("we go")
        assert client.receive()["code"] == "bad_protocol"
        assert close_code(client) == 1008


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("not json", "bad_protocol"),
        (b"binary", "bad_protocol"),
        ('{"type":"init","protocol_version":1,"source_lang":"en","target_lang":"de"}', "bad_protocol"),
        ({"raw": {"tail": {}}}, "bad_protocol"),
        ({"words": [["a", 1]]}, "bad_protocol"),
        ({"utterance_id": 3}, "bad_protocol"),
        ({"seq": 0}, "bad_protocol"),
        ({"clock_ms": 1}, "processing_failed"),
        ({"words": [["b", 9000, 9100], ["a", 0, 100]]}, "processing_failed"),
    ],
)
def test_bad_updates_leave_the_session_usable(server: Running, good: Client, frame: Any, code: str) -> None:
    with Client(server.url) as client:
        client.init()
        client.ask("we go")
        if isinstance(frame, dict):
            client.update("we go home", **frame)
        else:
            client.send(frame)
        assert client.receive()["code"] == code
        assert client.ask("we go home")["committed_text"] == "WE GO HOME"


def test_too_many_bad_frames_end_the_connection(server: Running, good: Client) -> None:
    with Client(server.url) as client:
        client.init()
        for _ in range(MAX_BAD_FRAMES):
            client.send("nonsense")
            assert client.receive()["code"] == "bad_protocol"
        assert close_code(client) == 1008


def test_a_message_of_ten_megabytes(server: Running, good: Client) -> None:
    with Client(server.url) as client:
        client.init()
        with suppress(ConnectionClosed):
            client.send("x" * 10_000_000)
        assert close_code(client) in (1009, 1006)  # the goodbye may be lost in what was not read
    wait_until(lambda: server.metric("sessions_open") == 1)


def test_a_client_that_never_says_init() -> None:
    with serving(ScriptedTranslator(), timeouts=Timeouts(0.2, WAIT_S)) as server, Client(server.url) as client:
        assert client.receive()["code"] == "bad_protocol"
        assert close_code(client) == 1008


def test_half_open_connections_are_let_go() -> None:
    with (
        serving(ScriptedTranslator(), timeouts=Timeouts(0.2, WAIT_S)) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) as half,
    ):
        half.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n")
        while half.recv(4096):
            pass


def talk_until_cut_off(client: Client) -> None:
    words = " ".join(["w" * 100] * 110)
    with suppress(ConnectionClosed, TimeoutError, OSError):
        for utterance_id in range(100_000):
            client.update(words, final=True, utterance_id=utterance_id)
        pytest.fail("never cut off")


def test_a_client_that_never_reads_is_cut_off_and_its_memory_is_bounded() -> None:
    with serving(ScriptedTranslator(), timeouts=Timeouts(WAIT_S, 0.3)) as server, Client(server.url) as good:
        good.init()
        with Client(server.url, max_queue=1) as client:
            client.init()
            talk_until_cut_off(client)
        wait_until(lambda: server.metric("sessions_open") == 1)
        assert good.ask("we go")["committed_text"] == "WE GO"


def test_a_full_server_says_busy() -> None:
    with serving(ScriptedTranslator(), max_sessions=2) as server, ExitStack() as clients:
        first, second, third = (clients.enter_context(Client(server.url)) for _ in range(3))
        assert first.init()["type"] == second.init()["type"] == "init_ok"
        assert third.init()["code"] == "busy"
        assert close_code(third) == 1013
        assert first.ask("we go")["committed_text"] == "WE GO"


def test_a_flood_of_connections() -> None:
    with serving(ScriptedTranslator(), max_sessions=2) as server, Client(server.url) as good:
        good.init()
        flood = [socket.create_connection(("127.0.0.1", server.port), timeout=WAIT_S) for _ in range(300)]
        try:
            assert good.ask("we go")["committed_text"] == "WE GO"
            assert flood[-1].recv(1) == b""  # cut before it says a word
        except ConnectionResetError:
            pass
        finally:
            for connection in flood:
                connection.close()
        wait_until(lambda: server.http("/healthz")[0] == 200)


def test_a_flood_of_updates_does_not_starve_the_others() -> None:
    translator = Gated()
    translator.open.set()
    with serving(translator) as server, Client(server.url) as flood, Client(server.url) as good:
        flood.init()
        good.init()
        for at in range(500):
            flood.update(f"word{at}")
        assert good.ask("we go")["committed_text"] == "WE GO"
        last = flood.update("the end", final=True)
        while (answer := flood.receive())["seq"] != last:
            assert answer["type"] == "translation"
        assert answer["final"]


def test_the_token_is_wanted_in_any_of_three_ways() -> None:
    token = "s3cret"
    basic = base64.b64encode(f"x:{token}".encode()).decode()
    with serving(ScriptedTranslator(), token=token) as server:
        for url, headers in (
            (server.url, {"Authorization": f"Bearer {token}"}),
            (server.url, {"Authorization": f"Basic {basic}"}),
            (f"{server.url}/?token={token}", {}),
        ):
            with Client(url, additional_headers=headers) as client:
                assert client.init()["type"] == "init_ok"
        for url, headers in (
            (server.url, {}),
            (server.url, {"Authorization": "Bearer wrong"}),
            (server.url, {"Authorization": "Basic ?"}),
            (f"{server.url}/?token=", {}),
        ):
            with pytest.raises(InvalidStatus) as refused:
                Client(url, additional_headers=headers)
            assert refused.value.response.status_code == 401
        assert server.http("/metrics")[0] == 401
        assert server.http("/metrics", {"Authorization": f"Bearer {token}"})[0] == 200
        assert json.loads(server.http("/healthz")[1])["status"] == "ok"


def test_a_page_in_a_browser_is_turned_away(server: Running) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Client(server.url, origin="https://example.org")
    assert refused.value.response.status_code == 403
