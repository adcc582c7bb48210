"""The command: what it refuses, which directions one server serves, and a whole life of it with the packaged model."""

from __future__ import annotations

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from engine.presets import PresetError, load_preset
from engine.server import command
from engine.server.command import ServerError, is_loopback, served_pairs, server_config
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import Client

ROOT = Path(__file__).parents[3]


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(words)


def test_the_defaults() -> None:
    config = server_config(parsed())
    assert (config.host, config.port, config.token, config.max_sessions, config.workers) == (
        *("127.0.0.1", 8765, "", 64, 1),
    )


def test_a_token_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(" s3cret\n")
    config = server_config(parsed("--host", "0.0.0.0", "--token-file", str(tmp_path / "token")))
    assert config.token == "s3cret"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--host", "0.0.0.0"), "can be reached from other machines"),
        (("--host", "example.org"), "can be reached from other machines"),
        (("--port", "70000"), "no port"),
        (("--max-sessions", "0"), "must be at least 1"),
        (("--workers", "-1"), "cannot be negative"),
        (("--token-file", "/nowhere/token"), "cannot be read from /nowhere/token: no such file or directory."),
        (("--host", "256.0.0.1.", "--token", "s3cret"), "256.0.0.1.:0 cannot be listened on: "),
        (("--host", "a..b", "--token", "s3cret"), "a..b:0 cannot be listened on: this can be no name of a host."),
        (("--token-file", os.devnull), "holds no token"),
        (("--set", "policy"), "KEY=VALUE"),
        (("--preset", "remote"), "no translator of its own"),
        (("--preset", "nothing"), "no preset"),
        (("--pairs", "en"), "no direction"),
        (("--pairs", "en-ja"), "does not translate en-ja"),
        (("--set", "translator.model=/nowhere.gguf"), "nowhere"),
    ],
)
def test_what_it_refuses(
    words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if "--host" in words:
        monkeypatch.setattr(command, "load_service", lambda _: pytest.fail("nothing is loaded for nothing"))
    assert command.run(parsed("--port", "0", *words)) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert sentence in error
    assert error.endswith(".")


def test_a_port_that_is_taken_is_said_before_anything_is_loaded(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "load_service", lambda _: pytest.fail("nothing is loaded for nothing"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert command.run(parsed("--port", str(port))) == 2
    assert capsys.readouterr().err == f"127.0.0.1:{port} cannot be listened on: address already in use.\n"


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False)],
)
def test_what_is_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) == loopback


def test_directions_that_need_other_heads_are_not_served() -> None:
    preset = load_preset("laptop", {"policy.top_k": 1})
    served = served_pairs(preset, [])
    assert served[0] == preset.pairs[0]
    for pair in preset.pairs:
        if pair not in served:
            with pytest.raises(ServerError, match="needs other heads"):
                served_pairs(preset, [served[0], pair])
    with pytest.raises(PresetError):
        served_pairs(preset, [("en", "ja")])


@pytest.mark.parametrize(("words", "drafts"), [((), 32), (("--workers", "5"), 5), (("--preset", "laptop"), 1)])
def test_a_translator_is_made_for_as_many_drafts_as_run_at_once(
    words: tuple[str, ...], drafts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def create(*_: object, sessions: int) -> ScriptedTranslator:
        asked.append(sessions)
        return ScriptedTranslator()

    monkeypatch.setattr(command, "create_translator", create)
    args = parsed("--preset", "gemma_low_latency", *words)
    command.load_service(args)
    assert asked == [drafts] == [server_config(args).workers]


@pytest.mark.models
def test_a_whole_life() -> None:
    notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    notify.bind("")  # a name of its own
    name = "@" + notify.getsockname()[1:].decode()
    words = [sys.executable, "-m", "engine", "mt-server", "--port", "0", "--pairs", "en-de"]
    with (
        notify,
        subprocess.Popen(
            words, cwd=ROOT, env={**os.environ, "NOTIFY_SOCKET": name}, stderr=subprocess.PIPE, text=True
        ) as server,
    ):
        killer = threading.Timer(90, server.kill)
        killer.start()
        assert server.stderr is not None
        port = 0
        for line in server.stderr:
            if found := re.search(r"Listening on ws://127\.0\.0\.1:(\d+)", line):
                port = int(found.group(1))
                break
        notify.settimeout(60)
        assert notify.recv(100) == b"READY=1"
        with Client(f"ws://127.0.0.1:{port}") as client:
            assert client.init()["model"] == "gemma-3-270m"
            assert client.ask("The weather is nice today.", final=True)["committed_text"]
            assert client.ask("We go home.", final=True, utterance_id=1)["committed_text"]
            server.send_signal(signal.SIGTERM)
            assert server.wait(60) == 0
        killer.cancel()
        assert notify.recv(100) == b"STOPPING=1"
