"""The engine's thread with a scripted vLLM behind it: sessions, cancellation, rows by rank, checks, and failures."""

from __future__ import annotations

import multiprocessing
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.capture.guard import CaptureError
from engine.capture.host import CaptureEngine, gather
from engine.capture.modes import EAGER, ModeRecord
from engine.capture.request import RowRequest
from engine.capture.settings import EngineSettings

HEADS = ((0, 1), (2, 0))


class ScriptedEngine:
    """Ends every request after `steps` steps. `break_in`: the call that raises."""

    def __init__(self, steps: int = 2, break_in: str = "", errors: dict[str, float] | None = None) -> None:
        self.steps, self.break_in, self.errors = steps, break_in, errors or {}
        self.requests: dict[str, Any] = {}
        self.aborted: list[str] = []
        self.dropped: list[str] = []
        self.hold = threading.Event()
        self.hold.set()
        self.shut_down = False
        self.engine_core = SimpleNamespace(shutdown=lambda: setattr(self, "shut_down", True))

    def add_request(self, name: str, prompt: Any, params: Any) -> str:
        if self.break_in == "add_request":
            raise ValueError("prompt too long")
        if self.break_in == "send":
            raise RuntimeError("nobody listens")
        self.requests[name] = [self.steps, prompt["prompt_token_ids"], params]
        return f"internal-{name}"

    def abort_request(self, names: list[str]) -> None:
        if self.break_in == "abort_request":
            raise RuntimeError("nobody listens")
        self.aborted += names
        for name in names:
            del self.requests[name]

    def step(self) -> list[Any]:
        self.hold.wait(0.005)
        if self.break_in == "step":
            raise RuntimeError("device lost")
        if not self.hold.is_set():
            return []
        ended = []
        for name, request in list(self.requests.items()):
            request[0] -= 1
            if request[0] <= 0:
                del self.requests[name]
                made = SimpleNamespace(token_ids=[7] * request[2].max_tokens, finish_reason="length")
                ended.append(SimpleNamespace(finished=True, request_id=name, outputs=[made], num_cached_tokens=3))
        return ended

    def collective_rpc(self, method: str, args: tuple[Any, ...]) -> list[Any]:
        if self.break_in == method:
            raise RuntimeError("kernel failed")
        if method == "capture_info":
            return [{"dtype": "float32", "groups": []}]
        if method == "drop_rows":
            self.dropped += args[0]
            return [None, None]
        return [{name: self._rows(rank) for name in args[0]} for rank in (0, 1)]

    def reset_prefix_cache(self) -> None:
        if self.break_in == "reset":
            raise RuntimeError("nobody listens")

    def _rows(self, rank: int) -> dict[str, Any]:
        rows = np.full((4, 1, 5), 0.2, np.float32)
        return {"columns": [rank], "shape": list(rows.shape), "rows": rows.tobytes(), "errors": self.errors}


@pytest.fixture
def engine_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes engines over scripted ones; vLLM's names are stood in for."""
    params = SimpleNamespace(RequestOutputKind=SimpleNamespace(FINAL_ONLY=2))
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(SamplingParams=lambda **given: SimpleNamespace(**given)))
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", params)
    monkeypatch.setitem(sys.modules, "vllm.distributed", SimpleNamespace(cleanup_dist_env_and_memory=lambda: None))
    made: list[CaptureEngine] = []

    def make(scripted: ScriptedEngine, verified: bool = True, **changes: Any) -> CaptureEngine:
        record = ModeRecord(EAGER).passed() if verified else ModeRecord(EAGER)
        made.append(CaptureEngine(lambda: scripted, EngineSettings("m", HEADS, max_model_len=64, **changes), record))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


REQUEST = RowRequest(0, 3, 8, 7)
PROMPT = list(range(8))


def test_rows_of_two_ranks_come_together(engine_of: Callable[..., CaptureEngine]) -> None:
    result = engine_of(ScriptedEngine()).generate(PROMPT, 4, rows=REQUEST)
    assert result.token_ids == (7, 7, 7, 7)
    assert result.finish == "length"
    assert result.cached_tokens == 3
    assert result.rows is not None
    assert result.rows.values.shape == (4, 2, 5)
    assert result.rows.finite


def test_a_head_that_no_rank_has_is_missing() -> None:
    rows = gather([ScriptedEngine()._rows(0)], 2, REQUEST)
    assert np.isfinite(rows.values[:, 0]).all()
    assert np.isnan(rows.values[:, 1]).all()


def test_many_callers_at_once(engine_of: Callable[..., CaptureEngine]) -> None:
    engine = engine_of(ScriptedEngine())
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(engine.generate(PROMPT, 3, rows=REQUEST))) for _ in range(9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 9
    assert all(result.rows.values.shape == (4, 2, 5) for result in results)


def test_a_cancelled_request_ends_and_its_rows_are_dropped(engine_of: Callable[..., CaptureEngine]) -> None:
    scripted = ScriptedEngine()
    scripted.hold.clear()
    result = engine_of(scripted).generate(PROMPT, 3, rows=REQUEST, cancel=lambda: True)
    assert result.finish == "cancelled"
    assert scripted.aborted == ["0"]
    assert scripted.dropped == ["internal-0"]


@pytest.mark.parametrize("where", ["send", "step", "take_rows"])
def test_whoever_waits_is_told_when_the_engine_breaks(engine_of: Callable[..., CaptureEngine], where: str) -> None:
    engine = engine_of(ScriptedEngine(break_in=where))
    assert engine.failure == ""
    with pytest.raises(CaptureError, match="The vLLM engine failed"):
        engine.generate(PROMPT, 3, rows=REQUEST)
    with pytest.raises(CaptureError, match="The vLLM engine failed"):
        engine.generate(PROMPT, 3)
    assert engine.failure.startswith("The vLLM engine failed")


@pytest.mark.parametrize("where", ["abort_request", "drop_rows"])
def test_whoever_cancels_is_told_when_the_engine_breaks(engine_of: Callable[..., CaptureEngine], where: str) -> None:
    scripted = ScriptedEngine(break_in=where)
    scripted.hold.clear()
    with pytest.raises(CaptureError, match="The vLLM engine failed"):
        engine_of(scripted).generate(PROMPT, 3, rows=REQUEST, cancel=lambda: True)


def test_whoever_asks_something_else_is_not_left_waiting(engine_of: Callable[..., CaptureEngine]) -> None:
    scripted = ScriptedEngine()
    engine = engine_of(scripted)
    scripted.break_in = "capture_info"
    assert engine.ask_info() == {}
    scripted = ScriptedEngine(break_in="reset")
    engine = engine_of(scripted)
    engine.reset_prefix_cache()
    with pytest.raises(CaptureError, match="nobody listens"):
        engine.generate(PROMPT, 3)


def test_a_refused_request_leaves_the_engine_up(engine_of: Callable[..., CaptureEngine]) -> None:
    scripted = ScriptedEngine(break_in="add_request")
    engine = engine_of(scripted)
    with pytest.raises(CaptureError, match="vLLM refused the request: prompt too long"):
        engine.generate(PROMPT, 3)
    scripted.break_in = ""
    assert engine.generate(PROMPT, 3).token_ids == (7, 7, 7)


def test_a_failed_start_is_raised_where_it_was_asked_for(engine_of: Callable[..., CaptureEngine]) -> None:
    scripted = ScriptedEngine(break_in="capture_info")
    with pytest.raises(RuntimeError, match="kernel failed"):
        engine_of(scripted)
    assert scripted.shut_down


class CoreOfItsOwn(ScriptedEngine):
    """Waits as vLLM's client does for answers of a process, which is real here and gives none."""

    def __init__(self, process: Any) -> None:
        super().__init__()
        manager = SimpleNamespace(processes=[process])
        self.process, self.waits = process, threading.Event()
        self.engine_core = SimpleNamespace(
            shutdown=lambda: None,
            resources=SimpleNamespace(engine_manager=manager, engine_dead=False),
            outputs_queue=queue.Queue(),
            utility_results={},
        )

    def step(self) -> list[Any]:
        self.waits.set()
        raise self.engine_core.outputs_queue.get()

    def collective_rpc(self, method: str, args: tuple[Any, ...]) -> list[Any]:
        if not self.waits.is_set():
            return [{"dtype": "float32"}]
        answer = self.engine_core.utility_results[1] = Future()
        return answer.result()


@pytest.fixture
def core() -> Iterator[Any]:
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    process.start()
    yield process
    process.kill()
    process.join()


ENDED = "The process of the vLLM engine has ended"


def test_the_end_of_an_engine_core_reaches_who_waits_for_tokens(
    engine_of: Callable[..., CaptureEngine], core: Any
) -> None:
    scripted = CoreOfItsOwn(core)
    engine = engine_of(scripted)
    job = engine.submit(PROMPT, 3)
    scripted.waits.wait()
    core.kill()
    with pytest.raises(CaptureError, match=ENDED):
        engine.wait(job)


def test_the_end_of_an_engine_core_reaches_who_waits_for_a_worker(
    engine_of: Callable[..., CaptureEngine], core: Any
) -> None:
    scripted = CoreOfItsOwn(core)
    engine = engine_of(scripted)
    scripted.waits.set()
    threading.Timer(0.2, core.kill).start()
    assert engine.ask_info() == {}
    with pytest.raises(CaptureError, match=ENDED):
        engine.generate(PROMPT, 3)


def test_the_end_of_an_engine_core_is_noticed_while_nobody_waits(
    engine_of: Callable[..., CaptureEngine], core: Any
) -> None:
    engine = engine_of(CoreOfItsOwn(core))
    told: queue.SimpleQueue[str] = queue.SimpleQueue()
    engine.on_failure = told.put
    core.kill()
    assert told.get(timeout=60).startswith(ENDED)
    assert engine.failure.startswith(ENDED)


def test_a_client_that_cannot_be_watched_is_said(
    engine_of: Callable[..., CaptureEngine], core: Any, caplog: pytest.LogCaptureFixture
) -> None:
    scripted = CoreOfItsOwn(core)
    del scripted.engine_core.outputs_queue
    engine_of(scripted)
    assert "will not be noticed" in caplog.text


def test_a_closed_engine_says_so(engine_of: Callable[..., CaptureEngine]) -> None:
    engine = engine_of(ScriptedEngine())
    told: list[str] = []
    engine.on_failure = told.append
    engine.close()
    assert told == []
    with pytest.raises(CaptureError, match="closed"):
        engine.generate(PROMPT, 3)
    assert engine.ask_info() == {}


@pytest.mark.parametrize("prompt", [[], list(range(64))])
def test_a_prompt_without_room_is_one_sentence(engine_of: Callable[..., CaptureEngine], prompt: list[int]) -> None:
    with pytest.raises(CaptureError, match="does not fit a context of 64"):
        engine_of(ScriptedEngine()).submit(prompt, 4)


def test_a_failed_check_withholds_all_rows_from_then_on(
    engine_of: Callable[..., CaptureEngine], caplog: pytest.LogCaptureFixture
) -> None:
    good = {"output": 1e-6, "rows": 0.0, "nonfinite": 0.0}
    scripted = ScriptedEngine(errors=good)
    engine = engine_of(scripted, check_every=2)
    assert engine.generate(PROMPT, 4, rows=REQUEST).rows is not None
    assert engine.generate(PROMPT, 4, rows=REQUEST).rows is not None
    scripted.errors = {**good, "output": 0.5}
    assert engine.generate(PROMPT, 4, rows=REQUEST).rows is not None
    assert engine.generate(PROMPT, 4, rows=REQUEST).rows is None
    assert engine.generate(PROMPT, 4, rows=REQUEST).rows is None
    assert engine.mode.label == "none/failed"
    assert "0.5" in engine.mode.reason
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1


def test_an_unverified_engine_gives_rows_to_its_self_test_alone(engine_of: Callable[..., CaptureEngine]) -> None:
    engine = engine_of(ScriptedEngine(errors={"output": 0.0, "rows": 0.0, "nonfinite": 0.0}), verified=False)
    assert engine.generate(PROMPT, 4, rows=REQUEST).rows is None
    assert engine.generate(PROMPT, 4, rows=RowRequest(0, 3, 8, 7, check=True)).rows is not None
