"""A page for OBS's browser source, with the lines of the window: on this machine only, behind a token in the address.

Plain asyncio rather than a web framework: there are two addresses, one page and one stream of server-sent events
(`EventSource`, which browsers connect again by themselves). Every message carries all lines on screen, so a viewer that
is slow or comes late misses nothing and costs nothing: only the newest state waits for it.

    http://127.0.0.1:8766/<token>/          the page
    http://127.0.0.1:8766/<token>/lines     the stream
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import logging
import secrets
from collections.abc import Callable
from typing import Any

from app.errors import UserError
from app.subtitles import Line, Subtitles
from engine.presets import resources

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
REQUEST_S = 10.0  # for the head of a request to come
HEAD_BYTES = 16_384
VIEWERS = 32  # at a time
ALIVE_S = 15.0  # a comment so often, so that a viewer that has gone is noticed
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"


class PageError(UserError):
    """The page cannot be served; one sentence."""


def new_token() -> str:
    """A token for the address that nobody can guess."""
    return secrets.token_urlsafe(18)


class ObsPage:
    """Serves a `Subtitles` model. `style` gives the page's look when asked: any JSON object (see page.html)."""

    def __init__(self, subtitles: Subtitles, style: Callable[[], dict[str, Any]]) -> None:
        self._subtitles, self._style = subtitles, style
        self._server: asyncio.Server | None = None
        self._token = ""
        self._viewers: set[asyncio.Event] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._leave: Callable[[], None] | None = None

    @property
    def address(self) -> str:
        """Where the page is; "" while it is not served."""
        if self._server is None:
            return ""
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}/{self._token}/"

    @property
    def viewers(self) -> int:
        """How many browsers show it now."""
        return len(self._viewers)

    async def start(self, port: int, token: str) -> None:
        """Serve from now on. Raises `PageError`, for example when another program has the port."""
        await self.stop()
        if not token:
            raise PageError("The page for browsers needs a token in its address.")
        try:
            self._server = await asyncio.start_server(self._connected, HOST, port, limit=HEAD_BYTES)
        except OSError as error:
            raise PageError(
                f"The page for browsers cannot use port {port} ({error.strerror or error}): choose another one."
            ) from error
        self._token = token
        self._leave = self._subtitles.changed.subscribe(self._changed)

    async def stop(self) -> None:
        """End the page and let go of every viewer."""
        if self._leave is not None:
            self._leave()
            self._leave = None
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def look_changed(self) -> None:
        """The style is different now: tell the viewers."""
        self._changed(None)

    def _changed(self, line: Line | None) -> None:
        for waiting in self._viewers:
            waiting.set()

    # ------------------------------------------------------------ one connection

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
            await self._answer(head.decode("latin-1"), reader, writer)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # a caller that says nothing, too much, or has gone
        except asyncio.CancelledError:
            if self._server is not None:
                raise
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request, *rest = head.split("\r\n")
        words = request.split(" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
        if len(words) != 3 or words[0] != "GET":
            return await _send(writer, "405 Method Not Allowed", "Only GET.")
        if not self._is_ours(headers.get("host", "")):
            return await _send(writer, "403 Forbidden", "Only from this machine.")
        _, _, path = words[1].partition("?")[0].partition("/")
        token, _, what = path.partition("/")
        if not hmac.compare_digest(token.encode(), self._token.encode()) or what not in ("", "lines"):
            return await _send(writer, "404 Not Found", "There is nothing here.")
        if what == "":
            page = (resources() / "obs" / "page.html").read_text(encoding="utf-8")
            return await _send(writer, "200 OK", page, "text/html; charset=utf-8")
        if len(self._viewers) >= VIEWERS:
            return await _send(writer, "503 Service Unavailable", "Too many viewers.")
        return await self._stream(reader, writer)

    def _is_ours(self, host: str) -> bool:
        """Whether the address in the request is that of this machine: a page elsewhere that had its name resolved to
        here would send its own.
        """
        return host.rsplit(":", 1)[0] in ("127.0.0.1", "localhost")

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """All lines at once, then again whenever something has changed; the newest state only."""
        changed = asyncio.Event()
        changed.set()
        self._viewers.add(changed)
        gone = asyncio.ensure_future(reader.read(1))  # a viewer sends nothing more: whatever comes is its end
        try:
            writer.write(_head("200 OK", "text/event-stream", "Cache-Control: no-store\r\n"))
            while not gone.done():
                waiting = asyncio.ensure_future(changed.wait())
                try:
                    await asyncio.wait({waiting, gone}, timeout=ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    waiting.cancel()
                message = f"data: {self._state()}\n\n" if changed.is_set() else ": still here\n\n"
                changed.clear()
                writer.write(message.encode("utf-8", "replace"))
                await writer.drain()
        finally:
            gone.cancel()
            self._viewers.discard(changed)

    def _state(self) -> str:
        lines = [
            {"key": list(line.key), "stable": line.stable, "held": line.held, "final": line.final}
            for line in self._subtitles.lines
            if line.runs
        ]
        return json.dumps({"lines": lines, "style": self._style()}, ensure_ascii=True)


async def _send(writer: asyncio.StreamWriter, status: str, body: str, kind: str = "text/plain; charset=utf-8") -> None:
    data = body.encode("utf-8")
    writer.write(_head(status, kind, f"Content-Length: {len(data)}\r\n") + data)
    await writer.drain()


def _head(status: str, kind: str, more: str) -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{more}Connection: close\r\nContent-Security-Policy: {POLICY}\r\n"
        "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\r\n"
    ).encode("latin-1")
