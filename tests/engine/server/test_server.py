"""The server over real sockets: the protocol's frames, scheduling, several clients, the end."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

import pytest
from websockets.exceptions import ConnectionClosed

from engine.alignatt.draft import Draft
from engine.alignatt.policy import Policy
from engine.mt.contract import Cancel, Source
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import WAIT_S, Client, Running, serving

TIMES = ("queued_ms", "server_ms", "server_cpu_ms")


class Gated(ScriptedTranslator):
    """Drafts wait at a gate; what each was asked for is kept. `cancelled` counts those that ended early."""

    def __init__(self) -> None:
        super().__init__()
        self.open = threading.Event()
        self.asked: list[str] = []
        self.cancelled = 0

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        self.asked.append(source.text)
        deadline = time.monotonic() + WAIT_S
        while not self.open.is_set() and time.monotonic() < deadline:
            if cancel():
                self.cancelled += 1
                break
            time.sleep(0.002)
        return super().draft(session_id, source, prefill_ids, max_new_tokens, cancel)

    def wait_for_drafts(self, count: int) -> None:
        wait_until(lambda: len(self.asked) >= count)


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


@pytest.fixture
def server() -> Iterator[Running]:
    with serving(ScriptedTranslator()) as running:
        yield running


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(server.url) as client:
        assert client.init()["type"] == "init_ok"
        yield client


def test_init_ok_has_every_field(server: Running) -> None:
    with Client(server.url) as client:
        overrides = {"unknown": [1], "translation_alignatt_hold_back_target_units": 1}
        assert client.init(preset="test", overrides=overrides) == {
            "type": "init_ok",
            "protocol_version": 1,
            "direction": "en-de",
            "preset": "test",
            "model": "scripted",
            "capture": {"mode": "eager", "self_test": "not run"},
            "head_set": "",
            "heads_note": "",
            "policy": asdict(Policy(hold_back=1)),
        }


def test_a_translation_has_every_field(client: Client) -> None:
    answer = client.ask("we go", "home today")
    assert all(answer[name] >= 0 for name in TIMES)
    assert {name: value for name, value in answer.items() if name not in TIMES} == {
        "type": "translation",
        "seq": 1,
        "utterance_id": 0,
        "final": False,
        "committed_text": "WE GO",
        "committed_delta": "WE GO",
        "buffer_text": " HOME TODAY",
        "covered_source_units": 2,
        "stop_reason": "alignatt:source_frontier",
        "engine_calls": 1,
    }


def test_release_on_commit_takes_no_draft_and_finals_complete(server: Running, client: Client) -> None:
    client.ask("we go", "home today")
    answer = client.ask("we go home", "today")
    assert (answer["committed_delta"], answer["stop_reason"]) == (" HOME", "alignatt:commit_fast_path")
    assert answer["engine_calls"] == 0
    assert server.metric("fast_path_releases_total") == 1
    final = client.ask("we go home today", final=True)
    assert (final["committed_text"], final["final"], final["forced_final"]) == ("WE GO HOME TODAY", True, False)
    assert client.ask("it rains", utterance_id=1)["committed_text"] == "IT RAINS"


def test_a_repeated_final_is_answered_again_without_new_text(client: Client) -> None:
    first = client.ask("we go home", final=True)
    again = client.ask("we go home", final=True)
    assert (again["committed_text"], again["committed_delta"]) == (first["committed_text"], "")
    assert again["engine_calls"] == 0


def test_partials_coalesce_and_finals_are_all_answered_in_order() -> None:
    translator = Gated()
    with serving(translator) as server, Client(server.url) as client:
        client.init()
        client.update("a")
        translator.wait_for_drafts(1)
        for at in range(5):
            client.update(f"a b{at}")
        finals = [client.update("a b c", final=True)]
        finals.append(client.update("d e", final=True, utterance_id=1))
        last = client.update("f", utterance_id=2)
        wait_until(lambda: server.metric("updates_total", kind="partial") == 7)
        translator.open.set()
        answers = [client.receive() for _ in range(3)]
        assert [answer["seq"] for answer in answers] == [*finals, last]
        assert [answer["committed_text"] for answer in answers] == ["A B C", "D E", "F"]


def test_a_newer_source_cancels_a_running_draft_but_never_twice_in_a_row() -> None:
    translator = Gated()
    with serving(translator) as server, Client(server.url) as client:
        client.init()
        client.update("a")
        translator.wait_for_drafts(1)
        client.update("a b")
        translator.wait_for_drafts(2)  # the first made way
        client.update("a b c")
        wait_until(lambda: server.metric("updates_total", kind="partial") == 3)
        time.sleep(0.1)
        assert translator.cancelled == 1
        translator.open.set()
        assert client.receive()["committed_text"] == "A B"
        assert client.receive()["committed_text"] == "A B C"


def test_a_frontier_that_moves_does_not_cancel_the_draft_of_the_same_words() -> None:
    translator = Gated()
    with serving(translator) as server, Client(server.url) as client:
        client.init()
        client.update("a", "b c")
        translator.wait_for_drafts(1)
        client.update("a b", "c")
        wait_until(lambda: server.metric("updates_total", kind="partial") == 2)
        translator.open.set()
        assert client.receive()["committed_text"] == "A"
        assert client.receive()["stop_reason"] == "alignatt:commit_fast_path"
        assert translator.asked == ["a b c"]


def test_release_on_commit_does_not_wait_for_the_drafts_of_others() -> None:
    translator = Gated()
    translator.open.set()
    with serving(translator) as server, Client(server.url) as quick, Client(server.url) as slow:
        quick.init()
        slow.init()
        quick.ask("a", "b")
        translator.open.clear()
        slow.update("x y")
        translator.wait_for_drafts(2)
        assert quick.ask("a b")["committed_text"] == "A B"
        translator.open.set()
        assert slow.receive()["committed_text"] == "X Y"


def test_a_stale_partial_is_not_taken_for_the_next_utterance(client: Client) -> None:
    client.ask("we go", final=True)
    client.update("we g")
    assert client.ask("it rains", utterance_id=1)["committed_text"] == "IT RAINS"


def test_a_reconnect_continues_what_was_shown(server: Running) -> None:
    with Client(server.url) as client:
        client.init(accepted_target_prefix="Gestern WE", history=[["hi", "HALLO"]])
        client.shown[7] = "Gestern WE"
        answer = client.ask("we we go home", "now", utterance_id=7)
        assert answer["committed_text"] == "Gestern WE GO HOME"
        assert answer["committed_delta"] == " GO HOME"
        assert client.ask("next", utterance_id=7, final=True)["committed_text"].startswith("Gestern WE GO HOME")
        assert client.ask("so it is", utterance_id=8)["committed_text"] == "SO IT IS"


def test_a_failed_draft_is_an_error_frame_and_the_session_goes_on() -> None:
    translator = ScriptedTranslator()
    with serving(translator) as server, Client(server.url) as client:
        client.init()
        translator.fail = True
        seq = client.update("we go")
        error = client.receive()
        assert (error["type"], error["code"], error["seq"]) == ("error", "processing_failed", seq)
        client.update("we go", final=True)
        assert client.receive()["code"] == "processing_failed"
        translator.fail = False
        assert client.ask("we go", final=True)["committed_text"] == "WE GO"


def test_long_utterances_are_closed_by_the_server(client: Client) -> None:
    words = " ".join(f"w{at}" for at in range(121))
    answer = client.ask(words, "and more")
    assert (answer["final"], answer["forced_final"]) == (True, True)
    assert answer["committed_text"] == words.upper()
    client.update(words + " late")  # in flight while the server closed: its words come again in the next utterance
    assert client.ask("late words", utterance_id=1)["committed_text"] == "LATE WORDS"


def test_a_final_after_a_forced_one_says_only_what_is_new(client: Client) -> None:
    words = " ".join(f"w{at}" for at in range(121))
    client.ask(words)
    final = client.ask(f"{words} at last", final=True)
    assert (final["committed_delta"], final["forced_final"]) == (" AT LAST", False)


def test_a_final_of_a_thousand_words_is_translated_whole(client: Client) -> None:
    words = " ".join(f"w{at}" + ("," if at % 9 == 0 else "") for at in range(1000))
    assert client.ask(words, final=True)["committed_text"] == words.upper().replace(",", "")


def test_many_clients_at_once_each_get_their_own_text() -> None:
    def talk(number: int) -> None:
        try:
            with Client(server.url) as client:
                client.init()
                for utterance_id in range(4):
                    words = [f"s{number}u{utterance_id}w{at}" for at in range(6)]
                    for known in range(1, 6):
                        client.ask(" ".join(words[: known - 1]), words[known - 1], utterance_id=utterance_id)
                    final = client.ask(" ".join(words), final=True, utterance_id=utterance_id)
                    assert final["committed_text"] == " ".join(words).upper()
        except BaseException as error:
            failures.append(error)

    failures: list[BaseException] = []
    with serving(ScriptedTranslator()) as server:
        threads = [threading.Thread(target=talk, args=(number,)) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        assert not failures
        assert server.metric("append_only_violations_total") == 0
        wait_until(lambda: server.metric("sessions_open") == 0)


def test_a_client_that_leaves_frees_its_draft_and_its_session() -> None:
    translator = Gated()
    with serving(translator, max_sessions=1) as server:
        with Client(server.url) as client:
            client.init()
            client.update("we go", final=True)
            translator.wait_for_drafts(1)
            client.socket.close()
        wait_until(lambda: server.metric("sessions_open") == 0)
        assert translator.cancelled == 1
        with Client(server.url) as client:
            assert client.init()["type"] == "init_ok"


def test_a_stop_answers_what_is_due_and_then_says_goodbye() -> None:
    translator = Gated()
    with serving(translator) as server, Client(server.url) as client:
        client.init()
        client.update("we go", final=True)
        translator.wait_for_drafts(1)
        stopping = threading.Thread(target=server.call, args=(server.server.stop(),))
        stopping.start()
        translator.open.set()
        assert client.receive()["committed_text"] == "WE GO"
        with pytest.raises(ConnectionClosed) as closed:
            client.receive()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
        stopping.join(WAIT_S)


def test_health_and_metrics(server: Running, client: Client) -> None:
    client.ask("we go", "home")
    status, text = server.http("/healthz")
    health = json.loads(text)
    assert (status, health["status"], health["sessions"], health["directions"]) == (200, "ok", 1, ["en-de", "en-fr"])
    status, text = server.http("/metrics")
    assert status == 200
    for line in (
        "surtitle_mt_sessions_open 1.0",
        "surtitle_mt_drafts_total 1.0",
        "surtitle_mt_released_tokens_total 2.0",
    ):
        assert line in text.splitlines()
    assert "surtitle_mt_held_tokens_total 1.0" in text
    assert 'surtitle_mt_capture_ok{mode="eager",self_test="not run"} 1.0' in text


def test_capture_that_was_bad_for_a_while_is_well_again() -> None:
    translator = ScriptedTranslator(nan_rate=10)
    with serving(translator) as server, Client(server.url) as client:
        client.init()
        notices = []
        for at in range(20):
            notices += filter(None, [client.ask(f"one two three {at}", final=True, utterance_id=at).get("notice")])
        assert len(notices) == 1
        assert "local_agreement" in notices[0]
        assert json.loads(server.http("/healthz")[1])["status"] == "degraded"
        assert 'capture_ok{mode="eager",self_test="not run"} 0.0' in server.http("/metrics")[1]
        translator.nan_rate = 0
        for at in range(20, 160):
            client.ask(f"one two three {at}", final=True, utterance_id=at)
        assert json.loads(server.http("/healthz")[1])["status"] == "ok"
        assert 'capture_ok{mode="eager",self_test="not run"} 1.0' in server.http("/metrics")[1]


def test_a_context_that_is_cut_is_said_to_the_client_once() -> None:
    class Small(ScriptedTranslator):
        """Leaves two words of every context out."""

        def draft(
            self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
        ) -> Draft:
            drafted = super().draft(session_id, source, prefill_ids, max_new_tokens, cancel)
            return replace(drafted, context_left_out=2)

    with serving(Small()) as server, Client(server.url) as client:
        client.init(context_text="a talk about dogs")
        assert "2 of its 4 words are left out" in client.ask("we go", final=True)["notice"]
        assert "notice" not in client.ask("we go home", final=True, utterance_id=1)


def test_a_translator_that_can_draft_no_more_is_no_healthy_server() -> None:
    translator = ScriptedTranslator()
    with serving(translator) as server:
        translator.health.failure = "The vLLM engine failed; restart the engine."
        status, text = server.http("/healthz")
    assert status == 503
    assert json.loads(text)["status"] == "failed"
    assert json.loads(text)["failure"] == "The vLLM engine failed; restart the engine."


def test_rows_that_failed_their_test_decide_nothing() -> None:
    translator = ScriptedTranslator(nan_rate=10)
    translator.health.self_test = "failed"
    with serving(translator) as server, Client(server.url) as client:
        assert client.init()["policy"]["name"] == "local_agreement"
        client.ask("", "we go")
        assert client.ask("", "we go home")["committed_text"] == "WE GO"
