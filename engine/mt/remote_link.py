"""The connection to an MT server: one thread that connects, reads, and connects again with growing pauses."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import ConnectionClosed, InvalidStatus, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

from engine.mt.wire import MAX_FRAME_BYTES, PROTOCOL_VERSION

logger = logging.getLogger("surtitle.mt")

BACK_OFF_S = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)
OPEN_S = 5.0
INIT_S = 30.0
CLOSE_S = 2.0

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server is and how to get in."""

    url: str
    token: str = ""

    @property
    def shown(self) -> str:
        """The address without secrets."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


class Refused(Exception):
    """The server cannot be used; the message is one sentence. `final`: trying again will not help."""

    def __init__(self, message: str, final: bool = False) -> None:
        super().__init__(message)
        self.final = final


def open_session(address: Address, init: Message) -> tuple[ClientConnection, Message]:
    """A connection after a good `init`, and the server's `init_ok`. Raises `Refused`."""
    headers = {"Authorization": f"Bearer {address.token}"} if address.token else None
    where = f"The MT server {address.shown}"
    try:
        # entered by hand: the connection outlives this function, its thread closes it
        socket = connect(
            address.url,
            additional_headers=headers,
            compression=None,
            proxy=None if _is_local(address.url) else True,
            open_timeout=OPEN_S,
            close_timeout=1.0,
            max_size=MAX_FRAME_BYTES,
            logger=_quiet(),
        ).__enter__()
    except InvalidStatus as error:
        status = error.response.status_code
        if status == 401:
            raise Refused(f"{where} wants a token: name its file in translator.token_file.", final=True) from error
        raise Refused(f"{where} turned the connection away (HTTP {status}).") from error
    except (InvalidURI, ValueError) as error:
        raise Refused(
            f"'{address.shown}' is no address of an MT server; write it like ws://host:8765.", True
        ) from error
    except (OSError, WebSocketException) as error:
        reason = "it does not answer" if isinstance(error, TimeoutError) else _reason(error)
        raise Refused(f"{where} cannot be reached ({reason}).") from error
    try:
        socket.send(json.dumps({"type": "init", "protocol_version": PROTOCOL_VERSION, **init}))
        answer = _parsed(socket.recv(timeout=INIT_S))
    except (ConnectionClosed, TimeoutError, ValueError) as error:
        socket.close()
        raise Refused(f"{where} does not speak protocol {PROTOCOL_VERSION}.") from error
    if answer.get("type") == "init_ok":
        return socket, answer
    socket.close()
    message = str(answer.get("message") or answer.get("code") or "no reason given").rstrip(".")
    raise Refused(f"{where} refused the session: {message}.", final=answer.get("code") != "busy")


class Link:
    """Keeps a session on a server. `make_init` is asked anew for every connection, in the link's own thread.

    `changed(reason)` is told when the connection is lost or cannot be had (once per outage), and "" when it is back.
    """

    def __init__(self, address: Address, make_init: Callable[[], Message], changed: Callable[[str], None]) -> None:
        self._address = address
        self._make_init = make_init
        self._changed = changed
        self._condition = threading.Condition()
        self._socket: ClientConnection | None = None
        self._generation = 0
        self._init: Message = {}
        self._greeting: Message = {}
        self._inbox: deque[Message] = deque()
        self._down_since: float | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._keep, name="MT server link", daemon=True)
        self._thread.start()

    def wait_up(self, patience_s: float) -> bool:
        """Wait for a connection while one is being made, and for `patience_s` after it failed or was lost."""
        with self._condition:
            while self._socket is None and not self._closed:
                left_s = OPEN_S + INIT_S
                if self._down_since is not None:
                    left_s = self._down_since + patience_s - time.monotonic()
                    if left_s <= 0:
                        return False
                if not self._condition.wait(left_s) and self._down_since is None:
                    return False
            return self._socket is not None

    def present(self) -> tuple[int, Message, Message]:
        """Number of the present (or last) connection, the init it began with, and the server's `init_ok`."""
        with self._condition:
            return self._generation, self._init, self._greeting

    def wait_mail(self, generation: int, timeout_s: float) -> bool:
        """Wait a moment for messages; whether that connection still stands."""
        with self._condition:
            self._condition.wait_for(lambda: self._inbox or not self._stands(generation), timeout_s)
            return self._stands(generation)

    def drain(self) -> list[Message]:
        """The messages of the present connection that have not been looked at."""
        with self._condition:
            messages = list(self._inbox)
            self._inbox.clear()
            return messages

    def _stands(self, generation: int) -> bool:
        return self._socket is not None and self._generation == generation

    def send(self, message: Message) -> bool:
        """Whether the message went out on the present connection."""
        socket = self._socket
        if socket is None:
            return False
        try:
            socket.send(json.dumps(message, ensure_ascii=False))
        except (ConnectionClosed, OSError):
            return False
        return True

    def renew(self) -> None:
        """Leave this connection and begin another at once: what the server knows of us does not hold any more."""
        with self._condition:
            socket, self._socket = self._socket, None
            self._condition.notify_all()
        if socket is not None:
            socket.close()

    def close(self) -> None:
        """End the connection and the thread."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()
            socket = self._socket
        if socket is not None:
            socket.close()
        self._thread.join(CLOSE_S)  # it may be waiting for a server that hangs; it ends by itself then

    # ------------------------------------------------------------ the thread

    def _keep(self) -> None:
        failures = 0
        while not self._closed:
            init = self._make_init()
            try:
                socket, greeting = open_session(self._address, init)
            except Refused as refused:
                self._lost(str(refused))
                self._pause(BACK_OFF_S[min(failures, len(BACK_OFF_S) - 1)])
                failures += 1
                continue
            failures = 0
            self._begin(socket, init, greeting)
            reason = self._read(socket)
            with self._condition:
                renewed = self._socket is not socket
                if not renewed:
                    self._socket = None
                self._condition.notify_all()
            if not renewed:
                self._lost(f"The connection to the MT server {self._address.shown} was lost ({reason}).")

    def _begin(self, socket: ClientConnection, init: Message, greeting: Message) -> None:
        with self._condition:
            self._socket, self._init, self._greeting = socket, init, greeting
            self._generation += 1
            self._inbox.clear()
            was_down, self._down_since = self._down_since is not None, None
            self._condition.notify_all()
        if was_down and not self._closed:
            self._changed("")

    def _read(self, socket: ClientConnection) -> str:
        """Fill the inbox until the connection ends; why it did."""
        reason = "it was closed"
        try:
            while not self._closed:
                message = _parsed(socket.recv())
                with self._condition:
                    if self._socket is socket:
                        self._inbox.append(message)
                    self._condition.notify_all()
        except ConnectionClosed as error:
            reason = "the server said goodbye" if error.rcvd else "it broke off"
        except ValueError as error:
            reason = f"it sent nonsense: {error}"
        socket.close()
        return reason

    def _lost(self, reason: str) -> None:
        with self._condition:
            first = self._down_since is None and not self._closed
            if first:
                self._down_since = time.monotonic()
            self._condition.notify_all()
        if first:
            logger.warning("%s", reason)
            self._changed(reason)

    def _pause(self, seconds: float) -> None:
        with self._condition:
            self._condition.wait_for(lambda: self._closed, seconds)


def _parsed(frame: str | bytes) -> Message:
    message = json.loads(frame)
    if not isinstance(message, dict):
        raise ValueError("a frame that is no object")
    return message


def _is_local(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def _reason(error: Exception) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "nothing listens there"
    return str(getattr(error, "strerror", None) or error or type(error).__name__).rstrip(".")


def _quiet() -> logging.Logger:
    """What goes wrong is said in our own sentences."""
    logger = logging.getLogger("surtitle.mt.websockets")
    logger.setLevel(logging.CRITICAL)
    return logger
