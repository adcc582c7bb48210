"""The vLLM seams of the MT benchmark: with and without capture, alone and with several sessions at once."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from engine.benchmarks.child import say
from engine.benchmarks.mt_cases import NEW_TOKENS, Case
from engine.benchmarks.mt_subject import Subject
from engine.capture.host import CaptureEngine
from engine.capture.request import RowRequest
from engine.capture.start import start

Save = Callable[[dict[str, Any]], None]
SESSIONS = (1, 2, 4, 8)
DRAFT_TOKENS = 16  # of a partial draft
DRAFTS = 4  # of each session, for each repeat of the 16 prompts


def request(case: Case, check: bool = False) -> RowRequest:
    """Rows of a case's draft, by the query that predicts each token."""
    return RowRequest(case.source_start, case.source_tokens, case.prompt_tokens, len(case.ids) - 1, check)


def measure(
    subject: Subject, eager: bool, mode: str, repeats: int, on_off: int, capture_only: bool, save: Save
) -> dict[str, Any]:
    """Both engines of a seam in one process, so that they can be compared. `on_off`: repeats for that comparison.

    `save` gets what was found after each step of an engine.
    """
    result: dict[str, Any] = {}
    cases = subject.cases()
    for capture in (True,) if capture_only else (False, True):
        began = time.perf_counter()
        settings = subject.settings(enforce_eager=eager, cudagraph_mode=mode, capture=capture)
        engine = start(settings, lambda _, text: say(text))
        say(f"runs in mode {engine.mode.label}")
        part: dict[str, Any] = {"start_s": round(time.perf_counter() - began, 1), "capture_mode": engine.mode.label}
        result["captured" if capture else "plain"] = part
        try:
            if capture and not engine.mode.verified:
                part["failed"] = engine.mode.reason
                return result
            part |= _requests(engine, cases, repeats, capture)
            save(result)
            say(f"{median(part['rows']):.2f} ms per token")
            if not eager:
                _comparison(engine, cases, repeats, on_off, capture, part)
            if capture:
                part["info"] = engine.ask_info()
                if subject.device == "cuda" and not (eager or subject.own_process):
                    try:
                        part["profile"] = profile(engine, cases[0])
                    except (RuntimeError, AttributeError) as error:  # no profiler on this machine
                        part["profile"] = {"failed": str(error)}
            save(result)
        finally:
            engine.close()
    if not capture_only:
        result["tokens_identical"] = result["plain"]["tokens"] == result["captured"]["tokens"]
    return result


def _requests(engine: CaptureEngine, cases: Sequence[Case], repeats: int, capture: bool) -> dict[str, Any]:
    """The method's figure: one warm-up pass, then the hot ones."""
    hot(engine, cases, 1, NEW_TOKENS, capture)
    rows, tokens = hot(engine, cases, repeats, NEW_TOKENS, capture)
    return {"rows": rows, "tokens": tokens}


def _comparison(
    engine: CaptureEngine, cases: Sequence[Case], repeats: int, on_off: int, capture: bool, part: dict[str, Any]
) -> None:
    """Tap alone and tap with rows, to be held against the engine without either; parts of a request; sessions."""
    part["without_rows_ms"] = median(hot(engine, cases, on_off, NEW_TOKENS, False)[0])
    part["first_token_ms"] = median(hot(engine, cases, on_off, 1, False)[0])
    part["decode_step_ms"] = (part["without_rows_ms"] * NEW_TOKENS - part["first_token_ms"]) / (NEW_TOKENS - 1)
    part["cold_prefix_ms"] = median(_cold(engine, cases, capture))
    if capture:
        part["with_rows_ms"] = median(hot(engine, cases, on_off, NEW_TOKENS, True)[0])
        part["draft_ms"] = DRAFT_TOKENS * median(hot(engine, cases, repeats, DRAFT_TOKENS, True)[0])
        part["sessions"] = [sessions(engine, cases, count, DRAFTS * repeats) for count in SESSIONS]


def hot(
    engine: CaptureEngine, cases: Sequence[Case], repeats: int, count: int, capture: bool
) -> tuple[list[dict[str, Any]], dict[str, list[int]]]:
    rows, tokens = [], {}
    for _ in range(repeats):
        for case in cases:
            elapsed, made = _one(engine, case, count, capture)
            tokens[case.name] = made
            rows.append({"case": case.name, "ms_per_token": round(elapsed / count, 4)})
    return rows, tokens


def _cold(engine: CaptureEngine, cases: Sequence[Case], capture: bool) -> list[dict[str, Any]]:
    """Every prompt without a cached prefix."""
    rows = []
    for case in cases:
        engine.reset_prefix_cache()
        rows.append({"case": case.name, "ms_per_token": _one(engine, case, NEW_TOKENS, capture)[0] / NEW_TOKENS})
    return rows


def _one(engine: CaptureEngine, case: Case, count: int, capture: bool) -> tuple[float, list[int]]:
    began = time.perf_counter()
    made = engine.generate(case.ids, count, rows=request(case) if capture else None, ignore_end=True)
    elapsed = (time.perf_counter() - began) * 1000
    if capture:
        assert made.rows is not None
        assert made.rows.finite
        assert len(made.rows.values) == count
    return elapsed, list(made.token_ids)


def profile(engine: CaptureEngine, case: Case, steps: int = 20) -> dict[str, Any]:
    """Where the device's time goes in a decode step, by kernel; wall time with the profiler's own cost."""
    import torch
    from torch.profiler import ProfilerActivity

    _one(engine, case, steps + 1, False)
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA]) as seen:
        elapsed, _ = _one(engine, case, steps + 1, True)
    kernels = sorted(seen.key_averages(), key=lambda kernel: -kernel.self_device_time_total)
    return {
        "steps": steps + 1,
        "wall_ms_per_step": round(elapsed / (steps + 1), 3),
        "busy_ms_per_step": round(sum(k.self_device_time_total for k in kernels) / 1000 / (steps + 1), 3),
        "launches_per_step": round(sum(k.count for k in kernels) / (steps + 1), 1),
        "kernels": [
            {"name": k.key[:90], "per_step": round(k.count / (steps + 1), 2),
             "us_per_step": round(k.self_device_time_total / (steps + 1), 2)}
            for k in kernels[:30]
        ],
        "tap": [
            {"name": k.key, "count": k.count, "us_each": round(k.self_device_time_total / k.count, 2)}
            for k in kernels if k.key in ("_copy_heads", "_rows")
        ],
    }  # fmt: skip


def median(rows: Sequence[dict[str, Any]]) -> float:
    return statistics.median(row["ms_per_token"] for row in rows)


def sessions(engine: CaptureEngine, cases: Sequence[Case], count: int, drafts: int) -> dict[str, Any]:
    """So many sessions, each drafting one prompt after another with rows."""
    times: list[float] = []
    lock = threading.Lock()

    def session(number: int) -> None:
        for turn in range(drafts):
            elapsed, _ = _one(engine, cases[(number * 5 + turn) % len(cases)], NEW_TOKENS, True)
            with lock:
                times.append(elapsed)

    threads = [threading.Thread(target=session, args=(number,)) for number in range(count)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed_s = time.perf_counter() - began
    return {
        "sessions": count,
        "tokens_per_s": round(count * drafts * NEW_TOKENS / elapsed_s, 1),
        "draft_ms_median": round(statistics.median(times), 2),
        "draft_ms_p95": round(sorted(times)[int(0.95 * (len(times) - 1))], 2),
    }
