"""A server on a free port in a thread of its own, and a client that speaks protocol v1 frame by frame."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

from websockets.sync.client import ClientConnection, connect

from engine.alignatt.policy import Policy
from engine.mt.contract import Translator
from engine.server.connection import Timeouts
from engine.server.server import MtServer, ServerConfig, Service
from engine.server.translation import Terms

WAIT_S = 30.0
PAIRS = (("en", "de"), ("en", "fr"))


class Running:
    """A started server. `call` runs a coroutine on its loop."""

    def __init__(self, server: MtServer, loop: asyncio.AbstractEventLoop, port: int) -> None:
        self.server = server
        self.loop = loop
        self.port = port
        self.url = f"ws://127.0.0.1:{port}"

    def call(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S)

    def http(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, str]:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """The value of one sample, 0 when it does not exist yet."""
        return self.server.metrics.registry.get_sample_value(f"surtitle_mt_{name}", labels) or 0.0


@contextmanager
def serving(translator: Translator, *, terms: Terms | None = None, **config: Any) -> Iterator[Running]:
    service = Service(translator, "test", "scripted", PAIRS, terms or Terms(Policy()))
    config = {"port": 0, "grace_s": 5.0, "timeouts": Timeouts(WAIT_S, WAIT_S), **config}
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="test server")
    thread.start()
    server = MtServer(service, ServerConfig(**config))
    running = Running(server, loop, 0)
    try:
        running = Running(server, loop, running.call(server.start()))
        yield running
    finally:
        running.call(server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


class Client:
    """Speaks in plain frames. `shown` follows what a viewer would see and checks every delta."""

    def __init__(self, url: str, **options: Any) -> None:
        self.socket: ClientConnection = connect(url, compression=None, proxy=None, **options).__enter__()
        self.seq = 0
        self.shown: dict[int, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, message: Any) -> None:
        self.socket.send(message if isinstance(message, str | bytes) else json.dumps(message))

    def receive(self, timeout_s: float = WAIT_S) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.socket.recv(timeout=timeout_s))
        if message["type"] == "translation":
            self._check(message)
        return message

    def _check(self, message: dict[str, Any]) -> None:
        before = self.shown.get(message["utterance_id"], "")
        assert before + message["committed_delta"] == message["committed_text"]
        assert not (message["final"] and message["buffer_text"])
        assert ("forced_final" in message) == message["final"]
        self.shown[message["utterance_id"]] = message["committed_text"]

    def init(self, **fields: Any) -> dict[str, Any]:
        self.send({"type": "init", "protocol_version": 1, "source_lang": "en", "target_lang": "de", **fields})
        return self.receive()

    def update(self, committed: str, tail: str = "", final: bool = False, utterance_id: int = 0, **fields: Any) -> int:
        """Send an update whose words have times of their own; its seq."""
        self.seq += 1
        words = [[word, 400.0 * at, 400.0 * at + 300] for at, word in enumerate(committed.split())]
        update = {
            "type": "update",
            "seq": self.seq,
            "utterance_id": utterance_id,
            "words": words,
            "tail": {"words": [[word, None, None] for word in tail.split()]},
            "clock_ms": 1e6 + self.seq,
            "is_final": final,
        }
        self.send(update | fields.pop("raw", {}) | fields)
        return self.seq

    def ask(self, committed: str, tail: str = "", final: bool = False, utterance_id: int = 0) -> dict[str, Any]:
        """Send an update and wait for its answer."""
        seq = self.update(committed, tail, final, utterance_id)
        answer = self.receive()
        assert answer["seq"] == seq
        return answer
