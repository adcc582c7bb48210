"""Many requests through one mode of a captured engine, every row looked at: `surtitle benchmark mt --correctness MODE`.

Prompts of 30 to 1,500 tokens, half of them growing out of an earlier one (prefix hits), 8 to 20 new tokens, several at
once; one request in ten is checked against the engine's own attention output. The artefact is written as it grows, and
a run that finds one goes on where it ended.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.benchmarks.mt_subject import Subject, environment
from engine.capture.host import CaptureEngine, Job
from engine.capture.request import RowRequest
from engine.capture.settings import NO_QUANTIZATION
from engine.capture.start import start

CHECK_EVERY = 10
SAVE_EVERY = 50
# What artefacts ran with that do not say it.
USUAL = {"tensor_parallel": 1, "dtype": "bfloat16", "device": "cuda", "quantization": NO_QUANTIZATION, "vllm": {}}


def run(subject: Subject, mode: str, wanted: dict[int, int], path: Path, kv_cache_gib: float) -> dict[str, Any]:
    """The artefact's content. `wanted`: requests by how many run at once. Resumes from `path` where it fits."""
    kind: dict[str, Any] = {"mode": mode, "model": subject.folder.name, "heads": [list(head) for head in subject.heads]}
    kind |= {name: getattr(subject, name) for name in USUAL}
    report = _load(path, kind)
    eager = mode == "eager"
    engine = start(
        subject.settings(enforce_eager=eager, cudagraph_mode="NONE" if eager else mode, kv_cache_gib=kv_cache_gib)
    )
    try:
        report |= {"capture_mode": engine.mode.label, "failed": engine.mode.reason}
        report["environment"] = environment(subject.device)
        if engine.mode.verified:
            vocabulary = int(subject.config().get_text_config().vocab_size)
            for at_once, requests in wanted.items():
                counts = report["at_once"].setdefault(str(at_once), no_counts())
                look_at_rows(engine, counts, requests, at_once, vocabulary, lambda: _save(path, report))
            report["info"] = engine.ask_info()
        _save(path, report)
    finally:
        engine.close()
    return report


def bad_rows(report: dict[str, Any]) -> int:
    """Rows that were missing, not finite or no distribution."""
    names = ("rows_missing", "rows_nonfinite", "rows_not_summing")
    return sum(counts[name] for counts in report["at_once"].values() for name in names)


def _load(path: Path, kind: dict[str, Any]) -> dict[str, Any]:
    if path.is_file():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if all(found.get(name, USUAL.get(name)) == value for name, value in kind.items()):
            return {**found, **kind}
    return {**kind, "at_once": {}}


def no_counts() -> dict[str, Any]:
    """What `look_at_rows` counts, before the first request."""
    names = ("requests", "tokens", "rows_missing", "rows_nonfinite", "rows_not_summing", "checked", "prefix_hits")
    return {
        **dict.fromkeys((*names, "beyond_window_512", "longest_prompt"), 0),
        "shortest_prompt": 1 << 30, "errors": {}, "seconds": 0.0,
    }  # fmt: skip


def look_at_rows(
    engine: CaptureEngine, counts: dict[str, Any], wanted: int, at_once: int, vocabulary: int, save: Callable[[], None]
) -> None:
    """Go on until `counts` holds so many requests; `save` is called now and then."""
    rng = random.Random(counts["requests"] * 100 + at_once)
    earlier: list[list[int]] = []
    running: list[tuple[RowRequest, int, list[int], Job]] = []
    began, before, started = time.monotonic(), counts["seconds"], counts["requests"]
    while started < wanted or running:
        while started < wanted and len(running) < at_once:
            ids, new = _prompt(rng, earlier, vocabulary), rng.randint(8, 20)
            half, check = len(ids) // 2, started % CHECK_EVERY == 0
            span = rng.randrange(1, half), rng.randrange(1, half)
            row = RowRequest(*span, len(ids) - rng.randrange(0, 4), len(ids) - 1, check)
            running.append((row, new, ids, engine.submit(ids, new, rows=row, ignore_end=True)))
            started += 1
        row, new, ids, job = running.pop(0)
        _judge(counts, row, new, ids, engine.wait(job))
        counts["seconds"] = round(before + time.monotonic() - began, 2)
        if counts["requests"] % SAVE_EVERY == 0:
            save()


def _prompt(rng: random.Random, earlier: list[list[int]], vocabulary: int) -> list[int]:
    """A prompt of 30 to 1,500 tokens, even in the logarithm; half of them begin like one of the last sixteen."""
    length = int(30 * (1500 / 30) ** rng.random())
    ids = [rng.randrange(vocabulary // 8, vocabulary // 2) for _ in range(length)]
    if earlier and rng.random() < 0.5:
        base = rng.choice(earlier[-16:])
        keep = rng.randrange(len(base) // 2, len(base))
        ids = (base[:keep] + ids)[: max(length, min(keep + 20, 1500))]
    earlier.append(ids)
    return ids


def _judge(report: dict[str, Any], row: RowRequest, count: int, ids: Sequence[int], made: Any) -> None:
    report["requests"] += 1
    report["tokens"] += len(made.token_ids)
    report["prefix_hits"] += made.cached_tokens > 0
    report["beyond_window_512"] += len(ids) > 512
    report["longest_prompt"] = max(report["longest_prompt"], len(ids))
    report["shortest_prompt"] = min(report["shortest_prompt"], len(ids))
    values = made.rows.values[:count] if made.rows is not None else np.zeros((0, 1, 1), np.float32)
    report["rows_missing"] += count - len(values)
    finite = np.isfinite(values).all(axis=-1)
    report["rows_nonfinite"] += int((~finite).any(axis=-1).sum())
    sums = np.where(finite, values.sum(axis=-1), 1.0)
    report["rows_not_summing"] += int((np.abs(sums - 1) > 2e-3).any(axis=-1).sum()) if len(values) else 0
    if row.check and made.rows is not None:
        report["checked"] += 1
        for name, value in made.rows.errors:
            report["errors"][name] = max(report["errors"].get(name, 0.0), value)


def _save(path: Path, report: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(report, indent=1), encoding="utf-8")
    part.replace(path)
