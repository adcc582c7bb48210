"""The program with an MT server as its translator: the server is killed under load, the program goes on."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from websockets.exceptions import WebSocketException

from engine.benchmarks.lag import session_figures
from engine.schemas import CaptionLine, HealthLine, read_log
from tests.e2e.machine import wait_for
from tests.e2e.test_terminal import captions
from tests.engine.server.harness import Client
from tests.packaging.test_mt_server import free_port, healthy

pytestmark = pytest.mark.e2e
Start = Callable[..., "subprocess.Popen[bytes]"]
ROOT = Path(__file__).parents[2]


@contextmanager
def load(url: str, clients: int) -> Iterator[None]:
    """Other clients that never rest, and come back when the server does."""
    done = threading.Event()

    def talk(number: int) -> None:
        while not done.is_set():
            try:
                with Client(url) as client:
                    client.init()
                    for utterance_id in range(10_000):
                        client.ask(f"some{number} words", "to translate", utterance_id=utterance_id)
                        client.ask(f"some{number} words to translate", final=True, utterance_id=utterance_id)
                        if done.is_set():
                            return
            except (WebSocketException, OSError, TimeoutError):
                done.wait(0.2)

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join(60)


def logged(log: Path) -> list[object]:
    return list(read_log(log)) if log.exists() else []


@pytest.mark.timeout(300)
def test_a_killed_server_leaves_the_program_running(
    start: Start, home: dict[str, str], recording: Path, tmp_path: Path
) -> None:
    port, log = free_port(), tmp_path / "log.jsonl"
    server = start("tests.engine.server.scripted_server", port, env={}, cwd=ROOT)
    wait_for(lambda: healthy(port), 60, "the server listens")
    url = f"ws://127.0.0.1:{port}"
    with load(url, 4):
        program = start(
            *("app.cli", "run", recording, "--headless", "--preset", "remote", "--set", f"translator.url={url}"),
            *("--log", log, "--export", tmp_path / "talk.txt"),
            env=home | {"PYTHONPATH": str(ROOT)},
            stdout=subprocess.DEVNULL,
        )
        wait_for(lambda: len([c for c in captions_so_far(log) if c.stable]) > 3, 120, "stable text is shown")
        server.kill()
        server.wait()
        wait_for(lambda: "remote_offline" in states(log), 30, "the loss of the server is said")
        shown = captions_so_far(log)[-1]
        assert program.poll() is None
        start("tests.engine.server.scripted_server", port, env={}, cwd=ROOT)
        wait_for(lambda: states(log)[-1:] == ["ok"], 60, "the return of the server is said")
        assert program.wait(200) == 0
    everything = captions(log)
    assert session_figures(everything, "de").retractions == 0
    later = [caption for caption in everything if caption.seq > shown.seq]
    assert any(caption.stable and caption.reason != "remote:offline" for caption in later)
    final = next(caption for caption in everything if caption.final and caption.utterance_id == shown.utterance_id)
    assert final.stable.startswith(shown.stable)
    text = " ".join((tmp_path / "talk.txt").read_text(encoding="utf-8").split())
    assert " ".join(final.stable.split()) in text


def captions_so_far(log: Path) -> list[CaptionLine]:
    return [line for line in logged(log) if isinstance(line, CaptionLine)]


def states(log: Path) -> list[str]:
    return [line.state for line in logged(log) if isinstance(line, HealthLine)]
