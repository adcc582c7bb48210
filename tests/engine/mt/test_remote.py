"""A session on an MT server: the same text as a local one, kept over reconnects, and honest about outages."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from engine.alignatt.policy import Policy
from engine.asr.contract import Word
from engine.evaluation.scores import EvaluationError, load_log
from engine.host import Models, session_info
from engine.messages import Configure
from engine.mt.contract import CaptionState, TranslationError
from engine.mt.remote import CAPTURE_CHANGED, NOTICE, OFFLINE, RemoteServer, RemoteTranslationSession
from engine.presets import PresetError, load_preset
from engine.schemas import HealthLine
from engine.server.translation import Terms
from tests.engine.evaluation.helpers import one_utterance, session_line, write
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import WAIT_S, Running, serving


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def remote(url: str, **overrides: Any) -> RemoteServer:
    values = {"translator.url": url, **{f"translator.{name}": value for name, value in overrides.items()}}
    return RemoteServer(load_preset("remote", values), "en", "de")


class Watched:
    """A session, what it said of its health, and an append-only check."""

    def __init__(self, server: RemoteServer, patience_s: float = WAIT_S) -> None:
        self.said: list[tuple[str, str]] = []
        self.session: RemoteTranslationSession = server.session(
            "a talk", lambda state, text: self.said.append((state, text)), patience_s
        )
        self.shown: dict[int, str] = {}

    def update(
        self, committed: str, tail: str = "", final: bool = False, utterance_id: int = 0, cancelled: bool = False
    ) -> CaptionState:
        words = [Word(word, at * 0.4, at * 0.4 + 0.3) for at, word in enumerate(f"{committed} {tail}".split())]
        count = len(committed.split())
        state = self.session.update(utterance_id, words[:count], words[count:], 1e3, final, lambda: cancelled)
        assert state.stable.startswith(self.shown.get(utterance_id, ""))
        self.shown[utterance_id] = state.stable
        return state

    @property
    def states(self) -> list[str]:
        return [state for state, _ in self.said]


@contextmanager
def watched(url: str, patience_s: float = WAIT_S) -> Iterator[Watched]:
    watch = Watched(remote(url), patience_s)
    try:
        yield watch
    finally:
        watch.session.close()


def session_log(folder: Path, server: RemoteServer, said: Sequence[tuple[str, str]] = ()) -> Path:
    """A log as the app writes it of a session on this server."""
    configured = Configure("remote", "en", "de")
    info = session_info(Models(configured, load_preset("remote"), None, server))  # type: ignore[arg-type]
    pinned = {name: info.pop(name) for name in ("model", "head_set", "policy", "capture_mode")}
    health = [HealthLine(component="translator", state=state, text=text) for state, text in said]
    return write(folder / "log", [session_line(**pinned, info=info), *health, *one_utterance()[1:]])


@pytest.fixture
def server() -> Iterator[Running]:
    with serving(ScriptedTranslator()) as running:
        yield running


def test_it_says_what_a_local_session_says(server: Running) -> None:
    with watched(server.url) as watch:
        state = watch.update("we go", "home today")
        assert (state.stable, state.held, state.covered_source_units) == ("WE GO", " HOME TODAY", 2)
        assert state.engine_call
        assert state.stages["rtt_ms"] >= state.stages["mt_ms"]
        state = watch.update("we go home", "today")
        assert (state.stable, state.reason, state.engine_call) == ("WE GO HOME", "alignatt:commit_fast_path", False)
        final = watch.update("we go home today", final=True)
        assert (final.stable, final.held, final.final) == ("WE GO HOME TODAY", "", True)
        assert watch.update("it rains", "now", utterance_id=1).stable == "IT RAINS"
        assert watch.update("it rains now", final=True, utterance_id=1).stable == "IT RAINS NOW"
        assert watch.said == []


def test_what_the_server_says_of_itself(server: Running) -> None:
    found = remote(server.url)
    assert (found.model, found.preset, found.policy) == ("scripted", "test", asdict(Policy()))
    assert (found.health.mode, found.health.self_test) == ("eager", "not run")


def test_it_says_that_the_server_uses_shared_heads() -> None:
    translator = ScriptedTranslator()
    translator.health.heads_note = "No head set for en-de: using the shared heads of the model."
    with serving(translator) as server:
        assert remote(server.url).health.heads_note == translator.health.heads_note


@pytest.mark.parametrize("self_test", ["passed", "failed", "not run"])
def test_a_log_is_scored_when_the_server_has_verified_its_rows(tmp_path: Path, self_test: str) -> None:
    translator = ScriptedTranslator()
    translator.health.mode, translator.health.self_test = "FULL", self_test
    with serving(translator) as server:
        path = session_log(tmp_path, remote(server.url))
    if self_test == "passed":
        assert load_log(path).session.capture_mode == "FULL"
    else:
        with pytest.raises(EvaluationError, match="self-test"):
            load_log(path)


@pytest.mark.parametrize("said", [{}, {"capture": "eager"}, {"capture": {"mode": "eager"}}, {"capture": {"mode": 3}}])
def test_a_log_of_a_server_that_says_nothing_of_its_rows_is_not_scored(tmp_path: Path, said: dict[str, Any]) -> None:
    with misbehaving(lambda socket, message: None, **said) as url, pytest.raises(EvaluationError, match="self-test"):
        load_log(session_log(tmp_path, remote(url)))


def test_a_server_that_comes_back_with_other_capture_says_so(tmp_path: Path) -> None:
    translator = ScriptedTranslator()
    with serving(translator) as first, watched(first.url) as watch:
        server = remote(first.url)
        watch.update("we go", "home")
        first.call(first.server.stop())
        wait_until(lambda: watch.states == ["remote_offline"])
        translator.health.mode, translator.health.self_test = "none", "failed"
        with serving(translator, port=first.port):
            wait_until(lambda: watch.states == ["remote_offline", "ok"])
            watch.update("we go home", "now")
            watch.update("we go home now")
            assert watch.states == ["remote_offline", "ok", CAPTURE_CHANGED]
            assert "'none'" in watch.said[-1][1]
            with pytest.raises(EvaluationError, match="changed"):
                load_log(session_log(tmp_path, server, watch.said))


def test_what_the_server_has_to_say_is_handed_on() -> None:
    with serving(ScriptedTranslator(nan_rate=10)) as server, watched(server.url) as watch:
        for at in range(20):
            watch.update(f"one two three {at}", final=True, utterance_id=at)
        assert watch.states == [NOTICE]
        assert "local_agreement" in watch.said[0][1]


def test_nothing_said_needs_no_server(server: Running) -> None:
    with watched(server.url) as watch:
        state = watch.update("", final=True)
        assert (state.stable, state.final, state.reason) == ("", True, "scheduler:empty_source")


def test_long_utterances_go_on_as_one_text() -> None:
    with serving(ScriptedTranslator(), terms=Terms(Policy(), max_words=6)) as server, watched(server.url) as watch:
        words = [f"w{at}" for at in range(25)]
        for known in range(1, 25):
            state = watch.update(" ".join(words[:known]), words[known])
            assert state.stable.split() == [word.upper() for word in words[: len(state.stable.split())]]
        final = watch.update(" ".join(words), final=True)
        assert final.stable.split() == [word.upper() for word in words]
        assert final.covered_source_units == 25


def test_a_cancelled_update_leaves_the_session_in_order(server: Running) -> None:
    with watched(server.url) as watch:
        watch.update("we go")
        watch.update("we go home", cancelled=True)
        assert watch.update("we go home today", final=True).stable == "WE GO HOME TODAY"
        assert watch.update("it rains", utterance_id=1).stable == "IT RAINS"


def test_a_failed_draft_raises_and_the_session_goes_on() -> None:
    translator = ScriptedTranslator()
    with serving(translator) as server, watched(server.url) as watch:
        watch.update("we go")
        translator.fail = True
        with pytest.raises(TranslationError):
            watch.update("we go home")
        with pytest.raises(TranslationError):
            watch.update("we go home", final=True)
        translator.fail = False
        assert watch.update("it rains", utterance_id=1).stable == "IT RAINS"  # though utterance 0 has had no final


def test_a_lost_server_is_said_and_text_continues_when_it_is_back() -> None:
    with serving(ScriptedTranslator()) as first:
        watch = Watched(remote(first.url))
        watch.update("hello there", final=True)
        watch.update("we go", "home", utterance_id=1)
    try:
        wait_until(lambda: watch.states == ["remote_offline"])
        assert first.url in watch.said[0][1]
        state = watch.update("we go home", "now", utterance_id=1)
        assert (state.stable, state.held, state.reason) == ("WE GO", "", OFFLINE)
        with serving(ScriptedTranslator(), port=first.port):
            wait_until(lambda: watch.states == ["remote_offline", "ok"])
            assert watch.update("we go home", "now", utterance_id=1).stable == "WE GO HOME"
            assert watch.update("we go home now", final=True, utterance_id=1).stable == "WE GO HOME NOW"
            assert watch.update("it rains", utterance_id=2).stable == "IT RAINS"
    finally:
        watch.session.close()


def test_a_final_waits_for_the_server_to_come_back() -> None:
    with serving(ScriptedTranslator()) as first:
        watch = Watched(remote(first.url))
        watch.update("we go", "home")
    found: list[CaptionState] = []
    waiting = threading.Thread(target=lambda: found.append(watch.update("we go home", final=True)))
    try:
        wait_until(lambda: watch.states == ["remote_offline"])
        waiting.start()
        with serving(ScriptedTranslator(), port=first.port):
            waiting.join(WAIT_S)
            assert [state.stable for state in found] == ["WE GO HOME"]
    finally:
        watch.session.close()


def test_a_final_does_not_wait_for_ever() -> None:
    with serving(ScriptedTranslator()) as first:
        watch = Watched(remote(first.url), patience_s=0.2)
        watch.update("we go", "home")
    try:
        state = watch.update("we go home", final=True)
        assert (state.stable, state.final, state.reason) == ("WE GO", True, OFFLINE)
        with serving(ScriptedTranslator(), port=first.port):
            wait_until(lambda: watch.states == ["remote_offline", "ok"])
            assert watch.update("it rains", utterance_id=1).stable == "IT RAINS"  # not behind "WE GO"
    finally:
        watch.session.close()


@contextmanager
def misbehaving(answer: Callable[[ServerConnection, dict[str, Any]], None], **greeting: Any) -> Iterator[str]:
    """A server that accepts any init and answers updates as it likes. `greeting`: what else its `init_ok` says."""

    def handle(socket: ServerConnection) -> None:
        for frame in socket:
            message = json.loads(frame)
            if message["type"] == "init":
                accepted = {"type": "init_ok", "protocol_version": 1, "model": "m", "preset": "p", **greeting}
                socket.send(json.dumps(accepted))
            else:
                answer(socket, message)

    with serve(handle, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        finally:
            server.shutdown()
            thread.join(WAIT_S)


def translation(message: dict[str, Any], text: str) -> str:
    return json.dumps(
        {
            "type": "translation",
            "seq": message["seq"],
            "utterance_id": message["utterance_id"],
            "final": message["is_final"],
            "committed_text": text,
            "buffer_text": "",
        }
    )


def test_a_server_that_would_change_stable_text_is_not_believed() -> None:
    texts = iter(["Wir gehen", "Wir laufen", "Wir gehen heim"])

    def answer(socket: ServerConnection, message: dict[str, Any]) -> None:
        socket.send(translation(message, next(texts)))

    with misbehaving(answer) as url, watched(url) as watch:
        assert watch.update("we go").stable == "Wir gehen"
        assert watch.update("we go home").stable == "Wir gehen"
        assert watch.session.violations == 1
        assert watch.update("we go home", final=True).stable == "Wir gehen heim"


def test_a_server_that_breaks_off_in_the_middle_keeps_what_was_shown() -> None:
    count = 0

    def answer(socket: ServerConnection, message: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        if count == 2:
            socket.socket.close()
        else:
            socket.send(translation(message, "Wir gehen"))

    with misbehaving(answer) as url, watched(url) as watch:
        assert watch.update("we go").stable == "Wir gehen"
        assert watch.update("we go home").stable == "Wir gehen"
        wait_until(lambda: watch.states == ["remote_offline", "ok"])
        assert watch.update("we go home", final=True).stable == "Wir gehen"


@pytest.mark.parametrize("nonsense", ["not json", "[]", "3"])
def test_a_server_that_talks_nonsense(nonsense: str) -> None:
    with misbehaving(lambda socket, _: socket.send(nonsense)) as url, watched(url, 0.2) as watch:
        assert watch.update("we go").reason == OFFLINE
        wait_until(lambda: "remote_offline" in watch.states)


def test_what_is_said_when_there_is_no_server_to_begin_with(tmp_path: Path) -> None:
    with serving(ScriptedTranslator()) as gone:
        url = gone.url
    with pytest.raises(TranslationError, match=r"cannot be reached \(nothing listens there\)\.$"):
        remote(url)
    with pytest.raises(TranslationError, match=r"cannot be read from \S+: no such file or directory\.$"):
        remote(url, token_file=str(tmp_path / "none"))
    with pytest.raises(PresetError, match=r"translator\.url"):
        remote("http://127.0.0.1")


def test_tokens_and_refusals(tmp_path: Path) -> None:
    with serving(ScriptedTranslator(), token="s3cret") as server:
        with pytest.raises(TranslationError, match="wants a token"):
            remote(server.url)
        (tmp_path / "token").write_text("s3cret\n")
        assert remote(server.url, token_file=str(tmp_path / "token")).model == "scripted"
        with pytest.raises(TranslationError, match="refused the session: This server runs the preset"):
            remote(server.url, token_file=str(tmp_path / "token"), remote_preset="gemma")
        with watched(server.url.replace("//", "//user:s3cret@")) as watch:
            assert watch.update("we go").stable == "WE GO"
            assert "s3cret" not in watch.session._where
