"""The page for browsers in a real one: Chromium, where it is installed, driven through its DevTools protocol."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import websockets

from app.obs_page import ObsPage
from app.subtitles import Subtitles
from tests.app.captions import caption
from tests.app.helpers import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --remote-debugging-port=0"
)
LOOK: dict[str, Any] = {
    "font": '"DejaVu Sans"',
    "font_pt": 24.0,
    "bold": False,
    "lines": 2,
    "stable": "#ffffff",
    "held": "#b2becc",
    "background": "rgba(14, 16, 20, 0.85)",
    "outline": "#000000",
    "outline_px": 3.0,
    "mark": "wave",
    "show_held": True,
    "smooth": False,
    "linger_s": 0,
}

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed: apt install chromium")


class Browser:
    """One page of a browser. `complaints`: what it wrote into its console."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self._socket, self._asked = socket, 0
        self.complaints: list[str] = []

    async def do(self, method: str, **parameters: Any) -> Any:
        self._asked += 1
        await self._socket.send(json.dumps({"id": self._asked, "method": method, "params": parameters}))
        while True:
            message = json.loads(await self._socket.recv())
            if message.get("id") == self._asked:
                assert "error" not in message, message
                return message["result"]
            if message.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.complaints.append(json.dumps(message["params"]))

    async def find(self, expression: str) -> Any:
        """What a line of JavaScript gives."""
        found = await self.do("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def becomes(self, expression: str, wanted: Any) -> None:
        """Wait until it gives that."""
        for _ in range(200):
            if (found := await self.find(expression)) == wanted:
                return
            await asyncio.sleep(0.05)
        pytest.fail(f"{expression} is {found!r}, not {wanted!r}")


def watch(folder: Path, scenario: Callable[[Browser, ObsPage, Subtitles, dict[str, Any]], Awaitable[None]]) -> None:
    """A browser on a page; neither outlives the scenario."""

    async def run() -> None:
        subtitles, look = Subtitles(), dict(LOOK)
        page = ObsPage(subtitles, lambda: look)
        await page.start(0, "token")
        port = folder / "DevToolsActivePort"
        with subprocess.Popen(
            [str(CHROMIUM), *OPTIONS.split(), f"--user-data-dir={folder}", "--window-size=1280,400", page.address],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            try:
                await until(lambda: page.viewers == 1 and port.exists() and "\n" in port.read_text(), 90)
                number, _ = port.read_text().split("\n", 1)
                async with websockets.connect(await _page_of(number), max_size=None) as socket:
                    browser = Browser(socket)
                    await browser.do("Runtime.enable")
                    await browser.do("Log.enable")
                    await scenario(browser, page, subtitles, look)
                    assert browser.complaints == []
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                await page.stop()

    asyncio.run(run())


async def _page_of(port: str) -> str:
    """The DevTools address of the first page."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    writer.write(f"GET /json/list HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length:"))
    pages = json.loads(await reader.readexactly(length))
    writer.close()
    await writer.wait_closed()
    return str(next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page"))


SHOWN = "[...list.children].map(p => p.textContent)"
LAST_LINE_IS_SEEN = (
    "list.lastChild.getBoundingClientRect().bottom <= room.getBoundingClientRect().bottom"
    " && room.getBoundingClientRect().bottom === innerHeight"
)


def test_text_is_text_and_the_newest_is_seen(tmp_path: Path) -> None:
    async def scenario(browser: Browser, page: ObsPage, subtitles: Subtitles, look: dict[str, Any]) -> None:
        await browser.becomes("room.hidden", True)  # nothing has been said: no bar over the picture
        subtitles.apply(caption(0, "Guten <b>Morgen</b>", held=" & willkommen"))
        await browser.becomes(SHOWN, ["Guten <b>Morgen</b> & willkommen"])
        assert await browser.find("room.hidden") is False
        assert await browser.find("document.querySelector('b')") is None
        mark = "document.querySelector('.mark')"
        assert await browser.find(f"{mark}.textContent") == "& willkommen", "no mark under the space in front"
        assert await browser.find(f"getComputedStyle({mark}).webkitTextStrokeWidth") == "0px"
        assert await browser.find(f"getComputedStyle({mark}.firstChild).webkitTextStrokeWidth") == "6px"
        assert await browser.find("getComputedStyle(document.body).backgroundColor") == "rgba(0, 0, 0, 0)"
        for number in range(1, 9):
            subtitles.apply(caption(number, "Donaudampfschifffahrtsgesellschaft" * number, final=True))
        await browser.becomes("list.children.length", 9)
        assert await browser.find(LAST_LINE_IS_SEEN)
        await browser.do("Emulation.setDeviceMetricsOverride", width=500, height=300, deviceScaleFactor=1, mobile=False)
        await browser.becomes(LAST_LINE_IS_SEEN, True)

    watch(tmp_path, scenario)


def test_what_is_over_goes_and_a_program_that_ended_leaves_nothing(tmp_path: Path) -> None:
    gone = "getComputedStyle(room).opacity"

    async def scenario(browser: Browser, page: ObsPage, subtitles: Subtitles, look: dict[str, Any]) -> None:
        look["linger_s"] = 0.2
        subtitles.apply(caption(0, "Guten Morgen.", final=True))
        await browser.becomes(gone, "0")
        look["linger_s"] = 0
        subtitles.apply(caption(1, "Wie geht es?"))
        await browser.becomes(SHOWN, ["Wie geht es?"])
        await browser.becomes(gone, "1")
        look["show_held"] = False
        page.look_changed()
        subtitles.apply(caption(2, "", held="Noch nicht"))
        await browser.becomes("style.show_held", False)
        assert await browser.find(SHOWN) == ["Wie geht es?"], "reading mode"
        port = int(page.address.split(":")[2].split("/")[0])
        await page.stop()
        await browser.becomes(gone, "0")
        browser.complaints.clear()  # that the address does not answer
        await page.start(port, "token")
        await browser.becomes(gone, "1")
        assert await browser.find(SHOWN) == ["Guten Morgen.", "Wie geht es?"]
        browser.complaints.clear()

    watch(tmp_path, scenario)
