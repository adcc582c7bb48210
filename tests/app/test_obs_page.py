"""The page for browsers, spoken to as a browser does: what it shows, and to whom it shows nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.obs_page import HEAD_BYTES, HOST, VIEWERS, ObsPage, PageError, new_token
from app.subtitles import Subtitles
from engine.messages import Caption
from tests.app.helpers import until

TOKEN = "a-token"


def caption(uid: int, stable: str, held: str = "", final: bool = False) -> Caption:
    return Caption(uid, stable, held, "", "", None, final, "test", 0.0, 1.0, 1.0, 1.0)


def serve(scenario: Callable[[ObsPage, Subtitles, int], Awaitable[None]]) -> None:
    """A page at a free port; whatever it left running fails the test."""

    async def run() -> None:
        subtitles = Subtitles()
        page = ObsPage(subtitles, lambda: {"lines": 2})
        await page.start(0, TOKEN)
        port = int(page.address.split(":")[2].split("/")[0])
        try:
            await asyncio.wait_for(scenario(page, subtitles, port), 60)
        finally:
            await page.stop()
        assert page.address == ""
        assert page.viewers == 0
        subtitles.apply(caption(9_000, "nobody listens"))
        await asyncio.sleep(0)
        assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    asyncio.run(run())


async def ask(port: int, path: str, host: str = "127.0.0.1", method: str = "GET") -> tuple[int, str]:
    """Status and everything that comes until the end."""
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    await _close(writer)
    return int(answer.split(" ")[1]), answer


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()


class Viewer:
    """A browser that listens to the stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def come(cls, port: int) -> Viewer:
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(f"GET /{TOKEN}/lines HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        assert "text/event-stream" in head
        return cls(reader, writer)

    async def next(self) -> Any:
        while True:
            message = (await self._reader.readuntil(b"\n\n")).decode()
            if message.startswith("data: "):
                return json.loads(message.removeprefix("data: "))

    async def leave(self) -> None:
        await _close(self._writer)


def test_lines_come_at_once_and_at_every_change() -> None:
    async def scenario(page: ObsPage, subtitles: Subtitles, port: int) -> None:
        subtitles.apply(caption(0, "Guten", " Morgen"))
        viewer = await Viewer.come(port)
        first = await viewer.next()
        assert first["style"] == {"lines": 2}
        assert [(line["stable"], line["held"]) for line in first["lines"]] == [("Guten", " Morgen")]
        subtitles.apply(caption(0, "Guten Morgen", final=True))
        assert [(line["stable"], line["final"]) for line in (await viewer.next())["lines"]] == [("Guten Morgen", True)]
        page.look_changed()
        await viewer.next()
        await viewer.leave()
        await until(lambda: page.viewers == 0)

    serve(scenario)


def test_a_slow_viewer_gets_the_newest_state_and_costs_nothing() -> None:
    async def scenario(page: ObsPage, subtitles: Subtitles, port: int) -> None:
        viewer = await Viewer.come(port)
        await viewer.next()
        for number in range(5000):
            subtitles.apply(caption(number, f"Satz {number} 🌦️ <b>", final=True))
        seen = 1
        while (await viewer.next())["lines"][-1]["stable"] != "Satz 4999 🌦️ <b>":
            seen += 1
        assert seen < 100
        await viewer.leave()

    serve(scenario)


@pytest.mark.parametrize(
    ("path", "host", "method", "status"),
    [
        (f"/{TOKEN}/", "127.0.0.1", "GET", 200),
        (f"/{TOKEN}/?x=1", "localhost", "GET", 200),
        ("/", "127.0.0.1", "GET", 404),
        ("/wrong/", "127.0.0.1", "GET", 404),
        ("/wrong/lines", "127.0.0.1", "GET", 404),
        (f"/{TOKEN}/../../etc/passwd", "127.0.0.1", "GET", 404),
        (f"/{TOKEN}/", "evil.example", "GET", 403),
        (f"/{TOKEN}/", "127.0.0.1", "POST", 405),
    ],
)
def test_who_gets_what(path: str, host: str, method: str, status: int) -> None:
    async def scenario(page: ObsPage, subtitles: Subtitles, port: int) -> None:
        got, answer = await ask(port, path, host, method)
        assert got == status
        assert "Content-Security-Policy: default-src 'none'" in answer
        assert (TOKEN in answer) is False
        if status == 200:
            assert "EventSource" in answer
            assert "innerHTML" not in answer, "text is never markup"

    serve(scenario)


def test_it_is_there_for_this_machine_only() -> None:
    async def scenario(page: ObsPage, subtitles: Subtitles, port: int) -> None:
        assert page.address == f"http://127.0.0.1:{port}/{TOKEN}/"
        assert page._server is not None
        assert {one.getsockname()[0] for one in page._server.sockets} == {"127.0.0.1"}

    serve(scenario)


def test_callers_that_say_nothing_or_too_much_are_let_go() -> None:
    async def scenario(page: ObsPage, subtitles: Subtitles, port: int) -> None:
        for sent in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\xff\xfe" * 50 + b"\r\n\r\n", b"x" * (3 * HEAD_BYTES)):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(sent)
            if not sent:
                writer.write_eof()
            with contextlib.suppress(ConnectionError):
                await reader.read()
            await _close(writer)
        assert (await ask(port, f"/{TOKEN}/"))[0] == 200
        _, quiet = await asyncio.open_connection(HOST, port)
        await page.stop()  # does not wait for who is still there and says nothing
        await _close(quiet)

    serve(scenario)


def test_there_is_a_limit_to_viewers() -> None:
    async def scenario(page: ObsPage, subtitles: Subtitles, port: int) -> None:
        viewers = [await Viewer.come(port) for _ in range(VIEWERS)]
        assert page.viewers == VIEWERS
        assert (await ask(port, f"/{TOKEN}/lines"))[0] == 503
        await viewers[0].leave()
        await until(lambda: page.viewers == VIEWERS - 1)
        for viewer in viewers[1:]:
            await viewer.leave()

    serve(scenario)


def test_a_port_that_is_taken_is_one_sentence() -> None:
    async def run() -> None:
        with socket.socket() as taken:
            taken.bind((HOST, 0))
            taken.listen()
            page = ObsPage(Subtitles(), dict)
            with pytest.raises(PageError, match="cannot use port"):
                await page.start(taken.getsockname()[1], TOKEN)
            with pytest.raises(PageError, match="token"):
                await page.start(0, "")
            assert page.address == ""
            await page.stop()

    asyncio.run(run())


def test_tokens_cannot_be_guessed() -> None:
    assert len({new_token() for _ in range(100)}) == 100
    assert len(new_token()) >= 24
