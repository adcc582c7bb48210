"""Tensor-parallel ranks beside one rank: `surtitle benchmark mt --tensor-parallel N`.

The same seeded weights, prompts and mode on one rank and on N, each in a process of its own: milliseconds per generated
token without capture and with rows delivered, 1 and 8 sessions, every row of many requests looked at in each graph mode
(as `--correctness` does), and the attention rows of the same given tokens, which must agree up to the rounding of the
type they were computed in. Saved after each engine: a run that finds its artefact goes on with what is missing in it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.benchmarks import mt_vllm
from engine.benchmarks.child import say
from engine.benchmarks.mt_cases import NEW_TOKENS, Case
from engine.benchmarks.mt_correctness import bad_rows, look_at_rows, no_counts
from engine.benchmarks.mt_subject import BenchmarkError, Subject
from engine.capture.host import CaptureEngine
from engine.capture.request import RowRequest
from engine.capture.start import start

Save = Callable[[dict[str, Any]], None]
GIVEN_TOKENS = 12
SESSIONS = (1, 8)


def measure(
    subject: Subject, modes: Sequence[str], repeats: int, requests: int, rows: Path, capture_only: bool, save: Save,
    found: dict[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """Findings of one number of ranks; the rows of the given tokens go to `rows` (.npz, one array a prompt).

    Times in the first of `modes`; `requests`, eight at a time, in each of them. What is in `found` already is left out;
    `save` gets all of it after each engine.
    """
    if "captured" not in found:
        found["captured"] = _times(subject, modes[0], repeats, True, requests, rows)
        save(found)
    if not capture_only and "plain" not in found:
        found["plain"] = _times(subject, modes[0], repeats, False)
        save(found)
    others = found.setdefault("other_modes", {})
    for mode in modes[1:]:
        if mode not in others:
            others[mode] = _other(subject, mode, requests)
            save(found)
    return found


def missing(found: dict[str, Any], modes: Sequence[str], capture_only: bool) -> bool:
    """Whether something is left to `measure`."""
    parts = {"captured", "environment"} if capture_only else {"captured", "plain", "environment"}
    return not parts <= set(found) or not set(modes[1:]) <= set(found["other_modes"])


def _times(
    subject: Subject, mode: str, repeats: int, capture: bool, requests: int = 0, rows: Path | None = None
) -> dict[str, Any]:
    engine, part = _engine(subject, mode, capture)
    cases = subject.cases()
    try:
        mt_vllm.hot(engine, cases, 1, NEW_TOKENS, capture)
        part["ms_per_token"] = mt_vllm.median(mt_vllm.hot(engine, cases, repeats, NEW_TOKENS, capture)[0])
        say(f"{part['ms_per_token']:.2f} ms per token")
        if rows is not None:
            np.savez(rows, **given_rows(engine, cases))
            part["sessions"] = [mt_vllm.sessions(engine, cases, count, mt_vllm.DRAFTS * repeats) for count in SESSIONS]
            say(f"sessions done; now every row of {requests} requests")
            part["rows"] = _rows(engine, subject, requests)
            part["info"] = engine.ask_info()
    finally:
        engine.close()
    return part


def _other(subject: Subject, mode: str, requests: int) -> dict[str, Any]:
    engine, part = _engine(subject, mode, True)
    try:
        return {**part, "rows": _rows(engine, subject, requests)}
    finally:
        engine.close()


def _engine(subject: Subject, mode: str, capture: bool) -> tuple[CaptureEngine, dict[str, Any]]:
    began = time.perf_counter()
    ranks = f"{subject.tensor_parallel} rank(s), {'rows' if capture else 'no rows'}"
    engine = start(subject.settings(cudagraph_mode=mode, capture=capture), lambda _, text: say(f"{ranks}: {text}"))
    say(f"{ranks}: runs in mode {engine.mode.label}")
    if capture and (not engine.mode.verified or engine.mode.reason):
        engine.close()
        raise BenchmarkError(f"The self-test failed in mode {mode}: {engine.mode.reason}.")
    return engine, {"start_s": round(time.perf_counter() - began, 1), "capture_mode": engine.mode.label}


def _rows(engine: CaptureEngine, subject: Subject, requests: int) -> dict[str, Any]:
    counts, vocabulary = no_counts(), int(subject.config().get_text_config().vocab_size)
    look_at_rows(engine, counts, requests, 8, vocabulary, lambda: None)
    return counts


def given_rows(engine: CaptureEngine, cases: Sequence[Case]) -> dict[str, Any]:
    """Rows [tokens, heads, source positions + 2] of each prompt while it reads the same seeded tokens."""
    rng, found = random.Random(5), {}
    for case in cases:
        given = [rng.choice(case.ids) for _ in range(GIVEN_TOKENS)]
        request = RowRequest(case.source_start, case.source_tokens, case.prompt_tokens, len(case.ids) - 1)
        made = engine.generate([*case.ids, *given], 1, rows=request, ignore_end=True)
        assert made.rows is not None
        found[case.name] = made.rows.values
    return found


def compare(one: Path, several: Path) -> dict[str, Any]:
    """How far the rows of two runs differ: a row's largest difference, and where the mean of the heads looks."""
    with np.load(one) as left, np.load(several) as right:
        pairs = [(left[name], right[name]) for name in left.files]
    rows, missing, alike = 0, 0, 0
    differences: list[float] = []
    for a, b in pairs:
        rows += len(a)
        missing += abs(len(a) - len(b))
        for here, there in zip(a, b, strict=False):
            if not (np.isfinite(here).all() and np.isfinite(there).all()):
                missing += 1
                continue
            differences.append(float(np.abs(here - there).max()))
            alike += int(here[:, :-2].mean(axis=0).argmax() == there[:, :-2].mean(axis=0).argmax())
    return {
        "rows": rows,
        "missing_or_nonfinite": missing,
        "difference_median": float(np.median(differences)) if differences else None,
        "difference_max": max(differences, default=None),
        "same_source_position": round(alike / rows, 4),
    }


def bad(report: dict[str, Any]) -> int:
    """Rows that were missing, not finite or no distribution, in all modes and ranks."""
    looked_at = [
        part["rows"]
        for found in report["ranks"].values()
        for part in (found["captured"], *found["other_modes"].values())
    ]
    return report["rows"]["missing_or_nonfinite"] + sum(bad_rows({"at_once": {"8": counts}}) for counts in looked_at)


def show(ranks: int, found: dict[str, Any]) -> None:
    """One line for a number of ranks."""
    if "error" in found:
        print(f"{ranks} rank(s): {found['error']}")
        return
    captured, eight = found["captured"], found["captured"]["sessions"][-1]
    plain = f"{found['plain']['ms_per_token']:.2f} ms per token without capture, " if "plain" in found else ""
    print(
        f"{ranks} rank(s): {plain}{captured['ms_per_token']:.2f} with rows; "
        f"{eight['sessions']} sessions {eight['tokens_per_s']:.0f} tokens/s"
    )
