"""The client against a real child process that plays an engine."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from app.engine_child import Target, exit_sentence
from app.engine_client import EngineClient, EngineError, EngineState
from engine.messages import Caption, Event, Loading
from tests.app.helpers import audio, client, configure, gone, until


def play(scenario: Callable[[EngineClient], Awaitable[None]], **limits: float) -> EngineClient:
    """Run a scenario and end the engine, whatever happens."""
    engine = client(**limits)

    async def run() -> None:
        try:
            await scenario(engine)
        finally:
            pid = engine.pid
            await engine.shutdown()
            assert engine.state is EngineState.OFF
            assert pid is None or gone(pid)

    asyncio.run(run())
    return engine


async def begin(engine: EngineClient, **script: Any) -> list[Event]:
    """Start, load and open a session; the list goes on growing."""
    heard: list[Event] = []
    engine.events.subscribe(heard.append)
    await engine.start()
    await engine.configure(configure(**script))
    engine.start_session("one")
    return heard


def speak(engine: EngineClient, seconds: float, start_s: float = 0.0) -> None:
    for block in range(round(seconds * 10)):
        engine.send_audio(audio(start_s + block / 10))


def test_a_session_from_load_to_the_last_word() -> None:
    async def scenario(engine: EngineClient) -> None:
        heard = await begin(engine)
        assert [event.text for event in heard if isinstance(event, Loading)][-1] == "part 3 of 3"
        assert engine.state is EngineState.RUNNING
        speak(engine, 2.4)
        stopped = await engine.stop_session()
        assert stopped.session_id == "one"
        assert stopped.audio_s == pytest.approx(2.4)
        captions = [event for event in heard if isinstance(event, Caption)]
        assert captions[-1].final
        assert captions[-1].stable == "diesem Vortrag"
        engine.start_session("two")
        assert (await engine.stop_session()).session_id == "two"

    engine = play(scenario)
    assert engine.protocol_errors == 0
    assert engine.audio_dropped == 0


def test_a_probe_is_answered() -> None:
    async def scenario(engine: EngineClient) -> None:
        await engine.start()
        assert (await engine.probe()).cpu_count == 2

    play(scenario)


def test_a_probe_that_fails_is_said_and_leaves_the_engine_as_it_was() -> None:
    async def scenario(engine: EngineClient) -> None:
        await begin(engine, probe="fail")
        with pytest.raises(EngineError, match="cannot be looked at"):
            await engine.probe()
        assert engine.state is EngineState.RUNNING
        await engine.stop_session()
        loading = asyncio.create_task(engine.configure(configure(load_s=0.5, probe="fail")))
        await until(lambda: engine.state is EngineState.LOADING)
        with pytest.raises(EngineError, match="cannot be looked at"):
            await engine.probe()
        await loading
        assert engine.state is EngineState.READY

    play(scenario)


def test_a_killed_engine_is_noticed_within_a_second_and_replaced() -> None:
    async def scenario(engine: EngineClient) -> None:
        reasons: list[str] = []
        noticed_s: list[float] = []
        engine.died.subscribe(reasons.append)
        engine.died.subscribe(lambda _: noticed_s.append(time.monotonic()))
        await begin(engine)
        speak(engine, 1.0)
        pid = engine.pid
        assert pid is not None
        killed_s = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        await until(lambda: engine.state is EngineState.DEAD)
        assert noticed_s[0] - killed_s < 1.0
        assert "SIGKILL" in reasons[0]
        assert engine.reason == reasons[0]
        with pytest.raises(EngineError, match="SIGKILL"):
            engine.start_session("no")
        engine.send_audio(audio(0.0))  # nobody is there: counted, not raised
        assert engine.audio_dropped == 1
        heard = await begin(engine)
        assert engine.pid != pid
        speak(engine, 1.0)
        await engine.stop_session()
        assert any(isinstance(event, Caption) for event in heard)
        assert len(reasons) == 1

    play(scenario)


def test_death_while_waiting_for_an_answer_ends_the_wait() -> None:
    async def scenario(engine: EngineClient) -> None:
        await begin(engine, on_stop="hang")
        stopping = asyncio.create_task(engine.stop_session())
        await until(lambda: engine.state is EngineState.STOPPING)
        engine.kill()
        with pytest.raises(EngineError, match="SIGKILL"):
            await stopping

    play(scenario)


def test_what_the_engine_said_before_it_died_is_heard() -> None:
    async def scenario(engine: EngineClient) -> None:
        heard = await begin(engine, die_at=5)
        speak(engine, 3.0)
        await until(lambda: engine.state is EngineState.DEAD)
        assert [e.stable for e in heard if isinstance(e, Caption)][-1] == "Guten Morgen und herzlich willkommen"

    play(scenario)


def test_the_whole_process_group_is_ended() -> None:
    async def scenario(engine: EngineClient) -> None:
        await engine.start()
        ready = await engine.configure(configure(grandchild=True))
        grandchild = ready.info["grandchild"]
        assert not gone(grandchild)
        assert engine.pid is not None
        os.kill(engine.pid, signal.SIGKILL)
        await until(lambda: engine.state is EngineState.DEAD)
        await until(lambda: gone(grandchild))

    play(scenario)


@pytest.mark.parametrize(
    ("load", "message", "state"),
    [
        ("fail", "weights are damaged", EngineState.IDLE),
        ("die", "exit code 3", EngineState.DEAD),
        ("fatal", "not enough memory", EngineState.DEAD),
    ],
)
def test_a_load_that_fails_says_why(load: str, message: str, state: EngineState) -> None:
    async def scenario(engine: EngineClient) -> None:
        await engine.start()
        with pytest.raises(EngineError, match=message):
            await engine.configure(configure(load=load))
        assert engine.state is state
        if not engine.alive:
            await engine.start()
        await engine.configure(configure())
        assert engine.state is EngineState.READY

    play(scenario)


def test_an_engine_that_cannot_be_imported_says_so() -> None:
    async def run() -> None:
        engine = EngineClient(Target("engine.no_such_module", "run"))
        await engine.start()
        with pytest.raises(EngineError, match=r"cannot be loaded.*no_such_module"):
            await engine.configure(configure())
        await engine.shutdown()

    asyncio.run(run())


def test_an_engine_that_hangs_while_stopping_is_ended() -> None:
    async def scenario(engine: EngineClient) -> None:
        await begin(engine, on_stop="hang")
        with pytest.raises(EngineError, match="said nothing"):
            await engine.stop_session()
        assert engine.state is EngineState.DEAD

    play(scenario, quiet_s=0.3)


def test_an_engine_that_does_not_leave_is_killed() -> None:
    pids: list[int] = []

    async def scenario(engine: EngineClient) -> None:
        await begin(engine, on_shutdown="hang")
        assert engine.pid is not None
        pids.append(engine.pid)
        await engine.stop_session()
        await engine.shutdown()

    engine = play(scenario, leave_s=0.2, terminate_s=0.2)
    assert engine.reason
    assert gone(pids[0])


def test_a_hole_in_the_sequence_is_counted_and_survived() -> None:
    async def scenario(engine: EngineClient) -> None:
        heard = await begin(engine, hole_at=2)
        speak(engine, 1.5)
        await engine.stop_session()
        assert [e.stable for e in heard if isinstance(e, Caption)][-1].startswith("Guten Morgen und")

    assert play(scenario).protocol_errors == 1


def test_commands_at_the_wrong_time_are_refused() -> None:
    async def scenario(engine: EngineClient) -> None:
        with pytest.raises(EngineError):
            engine.start_session("too early")
        await engine.start()
        with pytest.raises(EngineError, match="idle"):
            engine.start_session("too early")
        with pytest.raises(EngineError, match="no session"):
            await engine.stop_session()

    play(scenario)


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "without being asked"), (3, "exit code 3"), (-9, "SIGKILL"), (-11, "crashed (SIGSEGV)"), (-15, "SIGTERM")],
)
def test_every_end_has_its_sentence(code: int, words: str) -> None:
    sentence = exit_sentence(code)
    assert words in sentence
    assert sentence.endswith("restart it to go on.")
