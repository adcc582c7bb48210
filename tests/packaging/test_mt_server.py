"""The MT server as it is deployed: two replicas behind HAProxy with the shipped configuration, and the systemd unit."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import WebSocketException

from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import WAIT_S, Client, Running, serving
from tests.engine.server.test_server import wait_until

FOLDER = Path(__file__).parents[2] / "packaging" / "mt-server"
HAPROXY = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")

needs_haproxy = pytest.mark.skipif(HAPROXY is None, reason="haproxy is not installed")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def proxied(folder: Path, replicas: list[int]) -> Iterator[str]:
    """The shipped configuration with these ports."""
    port = free_port()
    text = (FOLDER / "haproxy.cfg").read_text(encoding="utf-8").replace("inter 2s", "inter 200ms")
    for shipped, ours in zip(("8765", "8771", "8772"), (port, *replicas), strict=True):
        text = re.sub(rf"(?<=127\.0\.0\.1:){shipped}", str(ours), text)
    (folder / "haproxy.cfg").write_text(text, encoding="utf-8")
    assert HAPROXY is not None
    with subprocess.Popen([HAPROXY, "-db", "-f", str(folder / "haproxy.cfg")]) as process:
        try:
            wait_until(lambda: healthy(port))
            yield f"ws://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(WAIT_S)


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=WAIT_S) as response:
            return bool(json.load(response)["status"] == "ok")
    except (urllib.error.URLError, OSError):
        return False


def connected(url: str, **init: str) -> Client:
    """A session, however long it takes the proxy to notice which replica is gone."""
    clients: list[Client] = []

    def tried() -> bool:
        try:
            client = Client(url, additional_headers={"Authorization": "Bearer s3cret"})
            if client.init(**init)["type"] == "init_ok":
                clients.append(client)
        except (WebSocketException, OSError):
            return False
        return bool(clients)

    wait_until(tried)
    return clients[0]


def open_sessions(replica: Running) -> int:
    return int(replica.metric("sessions_open"))


@needs_haproxy
def test_two_replicas_share_sessions_and_one_takes_over_from_the_other(tmp_path: Path) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(serving(ScriptedTranslator(), token="s3cret"))
        second = serving(ScriptedTranslator(), token="s3cret")
        other = second.__enter__()
        url = stack.enter_context(proxied(tmp_path, [first.port, other.port]))
        wait_until(lambda: healthy(first.port) and healthy(other.port))
        clients = [connected(url) for _ in range(6)]
        assert sorted(map(open_sessions, (first, other))) == [3, 3]
        for number, client in enumerate(clients):
            assert client.ask(f"we{number} go", "home")["committed_text"] == f"WE{number} GO"
        second.__exit__(None, None, None)
        kept = lost = 0
        for number, client in enumerate(clients):
            try:
                assert client.ask(f"we{number} go home")["committed_delta"] == " HOME"
                kept += 1
            except WebSocketException:
                again = connected(url, accepted_target_prefix=client.shown[0])
                again.shown = dict(client.shown)
                assert again.ask(f"we{number} go home", final=True)["committed_text"] == f"WE{number} GO HOME"
                again.socket.close()
                lost += 1
            client.socket.close()
        assert (kept, lost) == (3, 3)


def test_the_unit_starts_what_exists() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(FOLDER / "surtitle-mt-server.service", encoding="utf-8")
    words = unit["Service"]["ExecStart"].split()
    assert words[1:4] == ["-m", "engine", "mt-server"]
    assert unit["Service"]["Type"] == "notify"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    text = (FOLDER / "surtitle-mt-server.service").read_text(encoding="utf-8")
    unit = tmp_path / "surtitle-mt-server.service"
    unit.write_text(text.replace("/opt/surtitle/.venv/bin/python", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, timeout=60, check=False)
    complaints = [line for line in done.stderr.splitlines() if unit.name in line]
    assert complaints == []
