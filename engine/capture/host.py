"""A vLLM engine that several sessions share: requests in, tokens with rows out, cancelled at any time.

One thread owns the engine. Callers submit from any thread and wait; what is submitted together runs together. Rows are
fetched when a request ends, all requests of a step in one call to the workers.
"""

from __future__ import annotations

import itertools
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.capture import core_death
from engine.capture.guard import CaptureError
from engine.capture.modes import NO_CAPTURE, ModeRecord
from engine.capture.request import RowRequest, Rows
from engine.capture.settings import EngineSettings

logger = logging.getLogger("surtitle.capture")
Cancel = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Generation:
    """What one request gave. `finish`: "stop" (an end token, which is not in `token_ids`), "length" or "cancelled".

    `rows` is None when none were asked for, or when they cannot be trusted (see `CaptureEngine.mode`).
    """

    token_ids: tuple[int, ...]
    finish: str
    rows: Rows | None
    cached_tokens: int = 0


@dataclass(slots=True)
class Job:
    """A submitted request. `cancel` is asked between steps, by the engine's thread."""

    prompt_ids: Sequence[int]
    max_tokens: int
    stop_ids: frozenset[int]
    rows: RowRequest | None
    ignore_end: bool = False
    name: str = ""
    internal: str = ""
    cancel: Cancel | None = None
    result: Generation | None = None
    error: CaptureError | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def finish(self, result: Generation | None = None, error: CaptureError | None = None) -> None:
        self.result, self.error = result, error
        self.done.set()


class CaptureEngine:
    """Owns one vLLM engine in one mode. Made by `engine.capture.start.start`."""

    def __init__(self, build: Callable[[], Any], settings: EngineSettings, mode: ModeRecord) -> None:
        """Calls `build` in the thread that will run the engine (vLLM keeps a CUDA stream for each thread), and raises
        what it raises."""
        self.settings, self.mode = settings, mode
        self.info: dict[str, Any] = {}
        self.on_failure: Callable[[str], None] = lambda sentence: None  # called in the engine's thread, once
        self._engine: Any = None
        self._inbox: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._jobs: dict[str, Job] = {}
        self._numbers = itertools.count()
        self._failure: CaptureError | None = None
        self._gate = threading.Lock()  # an order is either taken by the engine's thread or refused, never left lying
        self._since_check = 0
        built: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, args=(build, built), name="surtitle-vllm", daemon=True)
        self._thread.start()
        if error := built.get():
            self._thread.join()
            raise error

    # ------------------------------------------------------------ any thread

    @property
    def failure(self) -> str:
        """Why it takes no requests any more, "" while it does."""
        return str(self._failure or "")

    def submit(
        self, prompt_ids: Sequence[int], max_tokens: int, stop_ids: Sequence[int] = (), rows: RowRequest | None = None,
        ignore_end: bool = False,
    ) -> Job:  # fmt: skip
        """Queue a request. Raises `CaptureError` when the engine has failed or the prompt does not fit."""
        room = self.settings.max_model_len - len(prompt_ids)
        if not prompt_ids or room < 1:
            raise CaptureError(
                f"A prompt of {len(prompt_ids)} tokens does not fit a context of {self.settings.max_model_len}."
            )
        job = Job(prompt_ids, min(max_tokens, room), frozenset(stop_ids), self._checked(rows), ignore_end)
        if not self._order("add", job):
            assert self._failure is not None
            raise self._failure
        return job

    def wait(self, job: Job, cancel: Cancel | None = None) -> Generation:
        """The result of a job; "cancelled" when `cancel()` is true after a step. Raises `CaptureError`.

        `cancel` is called by the engine's thread: it must be quick and must not raise.
        """
        job.cancel = cancel
        job.done.wait()
        if job.error:
            raise job.error
        assert job.result is not None
        return job.result

    def generate(
        self, prompt_ids: Sequence[int], max_tokens: int, stop_ids: Sequence[int] = (), rows: RowRequest | None = None,
        cancel: Cancel | None = None, ignore_end: bool = False,
    ) -> Generation:  # fmt: skip
        """Submit and wait."""
        return self.wait(self.submit(prompt_ids, max_tokens, stop_ids, rows, ignore_end), cancel)

    def reset_prefix_cache(self) -> None:
        """Forget all cached prefixes; only while nothing runs."""
        done = threading.Event()
        if self._order("reset", done):
            done.wait()

    def ask_info(self) -> dict[str, Any]:
        """`capture_info` of the first worker that watches a head, with its counts so far."""
        answer: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        return answer.get() if self._order("info", answer) else {}

    def close(self) -> None:
        """End the engine's thread and free the model."""
        self._order("close", None)
        self._thread.join()

    def distrust(self, reason: str) -> None:
        """Deliver no rows any more: a check of a running request failed."""
        logger.error("Attention capture failed its check (%s): rows are withheld from now on.", reason)
        self.mode = ModeRecord(NO_CAPTURE).failed(f"{self.mode.mode}: {reason}")

    def call(self, method: str, *args: Any) -> list[Any]:
        """Call a method of every worker. For the engine's thread only."""
        results: list[Any] = self._engine.collective_rpc(method, args=args)
        return results

    def _order(self, order: str, subject: Any) -> bool:
        """Hand an order to the engine's thread; false when it takes none any more."""
        with self._gate:
            if self._failure is None:
                self._inbox.put((order, subject))
            return self._failure is None

    def _checked(self, rows: RowRequest | None) -> RowRequest | None:
        if rows is None or self.mode.mode == NO_CAPTURE:
            return None
        self._since_check += 1
        if self.settings.check_every and self._since_check >= self.settings.check_every:
            self._since_check = 0
            return replace(rows, check=True)
        return rows

    # ------------------------------------------------------------ the engine's thread

    def _run(self, build: Callable[[], Any], built: queue.SimpleQueue[BaseException | None]) -> None:
        try:
            self._engine = build()
            core_death.watch(self._engine.engine_core, lambda: self._order("ended", None))
            self.info = self._info() if self.mode.mode != NO_CAPTURE else {}
        except BaseException as error:  # noqa: BLE001 - the thread that waits raises it
            built.put(error)
            self._free()
            return
        built.put(None)
        failure, closed = CaptureError("The vLLM engine is closed."), True
        try:
            while self._take_orders():
                if self._jobs:
                    self._step()
        except Exception as error:  # whatever broke the engine must reach everyone who waits
            logger.exception("The vLLM engine failed")
            failure, closed = CaptureError(self._sentence(error)), False
        with self._gate:
            self._failure = failure
        if not closed:
            self.on_failure(str(failure))
        for job in self._jobs.values():
            job.finish(error=failure)
        self._refuse_orders(failure)
        self._free()

    def _sentence(self, error: Exception) -> str:
        if core_death.is_dead(self._engine.engine_core):
            return "The process of the vLLM engine has ended, perhaps because memory ran out; restart the engine."
        return f"The vLLM engine failed ({type(error).__name__}: {error}); restart the engine."

    def _free(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            _shut_down(engine)

    def _take_orders(self) -> bool:
        """Carry out what was asked, waiting only when nothing runs. False when the engine is to close."""
        while True:
            try:
                order, subject = self._inbox.get(block=not self._jobs)
            except queue.Empty:
                for job in [job for job in self._jobs.values() if job.cancel and job.cancel()]:
                    self._cancel(job)
                return True
            if order == "close":
                return False
            try:
                self._carry_out(order, subject)
            except Exception:
                self._inbox.put((order, subject))  # refused with the rest
                raise

    def _carry_out(self, order: str, subject: Any) -> None:
        if order == "add":
            self._add(subject)
        elif order == "info":
            subject.put(self._info())
        elif order == "reset":
            self._engine.reset_prefix_cache()
            subject.set()
        elif order == "ended":
            raise core_death.CoreDeathError("the engine core has ended")

    def _info(self) -> dict[str, Any]:
        """All ranks schedule alike; but one without a chosen head has no captured values, so nor their type."""
        ranks: list[dict[str, Any]] = self.call("capture_info")
        return next((info for info in ranks if info.get("columns")), ranks[0])

    def _refuse_orders(self, failure: CaptureError) -> None:
        while True:
            try:
                order, subject = self._inbox.get_nowait()
            except queue.Empty:
                return
            if order == "add":
                subject.finish(error=failure)
            elif order == "info":
                subject.put({})
            elif order == "reset":
                subject.set()

    def _add(self, job: Job) -> None:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        job.name = str(next(self._numbers))
        params = SamplingParams(
            temperature=0.0,
            max_tokens=job.max_tokens,
            stop_token_ids=sorted(job.stop_ids),
            ignore_eos=job.ignore_end,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            extra_args=job.rows.extra_args() if job.rows else None,
        )
        try:
            job.internal = (
                self._engine.add_request(job.name, {"prompt_token_ids": list(job.prompt_ids)}, params) or job.name
            )
        except ValueError as error:
            job.finish(error=CaptureError(f"vLLM refused the request: {error}."))
            return
        self._jobs[job.name] = job

    def _cancel(self, job: Job) -> None:
        self._engine.abort_request([job.name])
        if job.rows:
            self.call("drop_rows", [job.internal])
        del self._jobs[job.name]
        job.finish(Generation((), "cancelled", None))

    def _step(self) -> None:
        ended = [output for output in self._engine.step() if output.finished and output.request_id in self._jobs]
        jobs = [self._jobs[output.request_id] for output in ended]
        names = [job.internal for job in jobs if job.rows]
        taken = self.call("take_rows", names) if names else []
        for output, job in zip(ended, jobs, strict=True):
            self._deliver(job, output, [ranks[job.internal] for ranks in taken if job.internal in ranks])
            del self._jobs[output.request_id]

    def _deliver(self, job: Job, output: Any, parts: Sequence[dict[str, Any]]) -> None:
        tokens = tuple(output.outputs[0].token_ids)
        finish = output.outputs[0].finish_reason
        if finish == "stop" and tokens and tokens[-1] in job.stop_ids:
            tokens = tokens[:-1]
        rows = gather(parts, len(self.settings.heads), job.rows) if job.rows else None
        if rows is not None and job.rows and job.rows.check:
            self._judge(rows)
        testing = self.mode.self_test == "not run" and job.rows is not None and job.rows.check
        if not self.mode.verified and not testing:
            rows = None
        job.finish(Generation(tokens, "stop" if finish == "stop" else "length", rows, output.num_cached_tokens or 0))

    def _judge(self, rows: Rows) -> None:
        from engine.capture.selftest import verdict

        if self.mode.verified and (reason := verdict(rows, self.info["dtype"])):
            self.distrust(reason)


def gather(parts: Sequence[dict[str, Any]], heads: int, request: RowRequest) -> Rows:
    """Rows of all heads from what each tensor-parallel rank holds. A head that no rank has is NaN."""
    shape = next((tuple(part["shape"]) for part in parts), (0, heads, request.source_tokens + 2))
    values: NDArray[np.float32] = np.full((shape[0], heads, request.source_tokens + 2), np.nan, np.float32)
    errors: dict[str, float] = {}
    for part in parts:
        if part["columns"]:
            values[:, part["columns"]] = np.frombuffer(part["rows"], np.float32).reshape(part["shape"])
        for name, value in part["errors"].items():
            errors[name] = max(errors.get(name, 0.0), value)
    return Rows(values, tuple(sorted(errors.items())))


def _shut_down(engine: Any) -> None:
    """Free the model and, in this process, the process groups that vLLM made."""
    engine.engine_core.shutdown()
    del engine
    from vllm.distributed import cleanup_dist_env_and_memory

    cleanup_dist_env_and_memory()
