"""The server: who may connect, what `/healthz` and `/metrics` say, and how it ends in good order."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import gc
import hmac
import json
import logging
import sys
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode
from websockets.http11 import Request, Response

from engine.mt.contract import Translator
from engine.mt.wire import DEFAULT_PORT, MAX_FRAME_BYTES
from engine.server.connection import Connection, Timeouts, goodbye, receive_init
from engine.server.metrics import CONTENT_TYPE, Metrics
from engine.server.protocol import (
    BAD_PROTOCOL,
    BUSY,
    UNSUPPORTED_DIRECTION,
    Init,
    ProtocolFault,
    init_ok,
)
from engine.server.slots import Slots
from engine.server.translation import Terms, WireTranslation

logger = logging.getLogger("surtitle.server")

SWITCH_INTERVAL_S = 1e-4  # as in the engine's process: callbacks between two tokens wait for the interpreter
SPARE_CONNECTIONS = 32  # beside the sessions: health checks, and clients about to be told that the server is busy


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """`port` 0: any free one. `workers`: drafts at once. `grace_s`: how long a stop waits for answers that are due."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    token: str = ""
    max_sessions: int = 64
    workers: int = 1
    ping_s: float = 20.0
    grace_s: float = 10.0
    timeouts: Timeouts = field(default_factory=Timeouts)


@dataclass(frozen=True, slots=True)
class Service:
    """What is served: one translator, the pairs it translates, and the terms of a session."""

    translator: Translator
    preset: str
    model: str
    pairs: tuple[tuple[str, str], ...]
    terms: Terms

    @property
    def directions(self) -> list[str]:
        return [f"{source}-{target}" for source, target in self.pairs]

    @property
    def capture_ok(self) -> bool:
        """Whether the attention rows can be relied on."""
        return self.translator.health.ok

    @property
    def present_terms(self) -> Terms:
        """The terms of a session that begins now: without attention to go by, the fallback policy decides."""
        policy = self.terms.policy
        if self.translator.health.self_test == "failed" and policy.name == "alignatt":
            return replace(self.terms, policy=policy.fall_back())
        return self.terms

    def provenance(self, terms: Terms) -> dict[str, Any]:
        """What a client must say of the rows behind its text, in the words of the log; `heads_note` as a sentence."""
        health = self.translator.health
        return {
            "capture": {"mode": health.mode, "self_test": health.self_test},
            "head_set": str(getattr(self.translator, "head_set_name", "")),
            "heads_note": health.heads_note,
            "policy": asdict(terms.policy),
        }


class MtServer:
    """`start`, then `stop`; between them everything happens on the loop and in the drafting threads."""

    def __init__(self, service: Service, config: ServerConfig, metrics: Metrics | None = None) -> None:
        self.service = service
        self.config = config
        self.metrics = metrics or Metrics()
        self._slots = Slots(config.workers)
        self._drafting = ThreadPoolExecutor(config.workers, "draft")
        self._closing = ThreadPoolExecutor(1, "close-session")
        self._connections: set[Connection] = set()
        self._sessions = 0
        self._stopping = False
        self._server: Server | None = None
        self.metrics.drafts_waiting.set_function(lambda: float(self._slots.waiting))

    async def start(self) -> int:
        """Listen; the port. Raises `OSError` when the address cannot be had."""
        config = self.config
        quiet = logging.getLogger("surtitle.server.websockets")
        quiet.setLevel(logging.CRITICAL)  # what port scanners and killed clients leave is no news
        self._server = await serve(
            self._handle,
            config.host,
            config.port,
            process_request=self._request,
            create_connection=_counted(config.max_sessions + 2 * SPARE_CONNECTIONS),
            origins=[None],  # a web page in a browser has no business with a server on this machine
            compression=None,
            ping_interval=config.ping_s,
            ping_timeout=config.ping_s,
            open_timeout=config.timeouts.init_s,
            close_timeout=5,
            max_size=MAX_FRAME_BYTES,
            max_queue=8,
            logger=quiet,
        )
        port: int = self._server.sockets[0].getsockname()[1]
        logger.info("listening on port %d", port)
        return port

    async def stop(self) -> None:
        """Refuse what is new, answer what is at hand for at most `grace_s`, then close every connection."""
        self._stopping = True
        if self._server is None:
            return
        self._server.close(close_connections=False)
        for connection in list(self._connections):
            connection.finish()
        for _ in range(int(self.config.grace_s * 20)):
            if not self._connections:
                break
            await asyncio.sleep(0.05)
        for connection in list(self._connections):
            connection.abandon()
        closing = [socket.close(CloseCode.GOING_AWAY) for socket in list(self._server.connections)]
        await asyncio.gather(*closing, return_exceptions=True)
        await self._server.wait_closed()
        await asyncio.to_thread(self._drafting.shutdown)
        await asyncio.to_thread(self._closing.shutdown)

    # ------------------------------------------------------------ HTTP

    def _request(self, socket: ServerConnection, request: Request) -> Response | None:
        path = urlsplit(request.path).path
        if path == "/healthz":
            return self._healthz(socket)
        if not self._authorised(request):
            self.metrics.rejected.labels("token").inc()
            return socket.respond(HTTPStatus.UNAUTHORIZED, "This server wants its token.\n")
        if path == "/metrics":
            page = self.metrics.page(self.service.translator.health, self.service.capture_ok)
            return _with_type(socket.respond(HTTPStatus.OK, page.decode()), CONTENT_TYPE)
        assert self._server is not None
        if self._stopping or len(self._server.connections) >= self.config.max_sessions + SPARE_CONNECTIONS:
            self.metrics.rejected.labels("connections").inc()
            return socket.respond(HTTPStatus.SERVICE_UNAVAILABLE, "This server has too many connections.\n")
        return None

    def _healthz(self, socket: ServerConnection) -> Response:
        service, health = self.service, self.service.translator.health
        state = "failed" if health.failure else "ok" if service.capture_ok else "degraded"
        body = {
            "status": "stopping" if self._stopping else state,
            "preset": service.preset,
            "model": service.model,
            "directions": service.directions,
            "sessions": self._sessions,
            "max_sessions": self.config.max_sessions,
            "capture": {"mode": health.mode, "self_test": health.self_test, "bad_rate": round(health.bad_rate, 4)},
            **({"failure": health.failure} if health.failure else {}),
        }
        down = self._stopping or health.failure
        status = HTTPStatus.SERVICE_UNAVAILABLE if down else HTTPStatus.OK
        return _with_type(socket.respond(status, json.dumps(body) + "\n"), "application/json")

    def _authorised(self, request: Request) -> bool:
        """Whether the token came along: as a bearer, as a basic password, or as `?token=`."""
        if not self.config.token:
            return True
        wanted = self.config.token.encode()
        matches = [
            hmac.compare_digest(wanted, offered.encode(errors="replace")) for offered in _offered_tokens(request)
        ]
        return any(matches)

    # ------------------------------------------------------------ sessions

    async def _handle(self, socket: ServerConnection) -> None:
        """One connection from its init to its end."""
        try:
            init = await receive_init(socket, self.config.timeouts.init_s)
            self._check(init)
        except ProtocolFault as fault:
            self.metrics.rejected.labels(fault.code).inc()
            self.metrics.errors.labels(fault.code).inc()
            code = CloseCode.TRY_AGAIN_LATER if fault.code == BUSY else CloseCode.POLICY_VIOLATION
            with contextlib.suppress(ConnectionClosed, TimeoutError):
                await asyncio.wait_for(socket.send(fault.frame()), self.config.timeouts.send_s)
                await goodbye(socket, code)
            return
        except ConnectionClosed:
            return
        await self._serve(socket, init)

    def _check(self, init: Init) -> None:
        """Raises `ProtocolFault` when this session cannot be held here."""
        service = self.service
        if init.direction.lower() not in service.directions:
            offered = ", ".join(service.directions)
            raise ProtocolFault(
                UNSUPPORTED_DIRECTION,
                f"This server does not translate {init.direction}; it offers {offered}.",
                supported=service.directions,
            )
        if init.preset is not None and init.preset != service.preset:
            raise ProtocolFault(BAD_PROTOCOL, f"This server runs the preset '{service.preset}' and no other.")
        if self._stopping or self._sessions >= self.config.max_sessions:
            raise ProtocolFault(BUSY, f"All {self.config.max_sessions} sessions of this server are taken.")

    async def _serve(self, socket: ServerConnection, init: Init) -> None:
        self._sessions += 1
        self.metrics.sessions.inc()
        self.metrics.sessions_open.set(self._sessions)
        session_id = uuid.uuid4().hex
        service = self.service
        translation = WireTranslation(service.translator, session_id, init, service.present_terms)
        connection = Connection(socket, translation, self._slots, self._drafting, self.metrics, self.config.timeouts)
        self._connections.add(connection)
        logger.info("session %s: %s, %d open", session_id, init.direction, self._sessions)
        try:
            with contextlib.suppress(ConnectionClosed):
                provenance = service.provenance(translation.terms)
                await socket.send(init_ok(init.direction.lower(), service.preset, service.model, provenance))
                await connection.run()
                if self._stopping:
                    await goodbye(socket, CloseCode.GOING_AWAY, "the server stops")
        finally:
            self._sessions -= 1
            self._connections.discard(connection)
            self.metrics.sessions_open.set(self._sessions)
            self.metrics.violations.inc(translation.violations)
            await asyncio.get_running_loop().run_in_executor(self._closing, translation.close)
            logger.info("session %s ended", session_id)


def settle() -> None:
    """For a process that serves, once its model is loaded: threads take turns quickly, and the garbage collector does
    not look through what loading has left, which would stop every session for a moment."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    gc.collect()
    gc.freeze()


def _offered_tokens(request: Request) -> Iterable[str]:
    yield from parse_qs(urlsplit(request.path).query).get("token", [])
    for header in request.headers.get_all("Authorization"):
        scheme, _, value = header.partition(" ")
        if scheme.lower() == "bearer":
            yield value.strip()
        elif scheme.lower() == "basic":
            with contextlib.suppress(binascii.Error, UnicodeDecodeError):
                yield base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]


def _with_type(response: Response, content_type: str) -> Response:
    del response.headers["Content-Type"]
    response.headers["Content-Type"] = content_type
    return response


def _counted(most: int) -> type[ServerConnection]:
    """Connections of which there are at most `most`, half-open ones included; more are cut before they say a word."""
    count = 0

    class Counted(ServerConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            nonlocal count
            count += 1
            super().connection_made(transport)
            if count > most:
                self.transport.abort()

        def connection_lost(self, exc: Exception | None) -> None:
            nonlocal count
            count -= 1
            super().connection_lost(exc)

    return Counted
