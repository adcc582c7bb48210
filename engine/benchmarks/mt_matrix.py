"""Row capture over architectures, model runners, attention backends and modes: `surtitle benchmark mt --matrix`.

Each combination looks at every row of many requests, as `--correctness` does, in a process of its own, and becomes a
row of one artefact: requests, rows that were missing or not finite, error of the rebuilt attention output, the mode
that passed its self-test; or the sentence with which it was refused. Saved after each row: a run that finds its
artefact goes on with the rows that are missing in it. Without filters the combinations are those of `CUDA` or `CPU`
below; with any, all products of what the filters name.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from engine.benchmarks import child
from engine.benchmarks.architectures import ARCHITECTURES
from engine.benchmarks.mt_subject import BenchmarkError
from engine.capture.modes import EAGER, GRAPH_MODES
from engine.capture.settings import NO_QUANTIZATION

GRAPHS = GRAPH_MODES[0]
BAD = ("rows_missing", "rows_nonfinite", "rows_not_summing")
POOL_GIB = {"cuda": 0.5, "cpu": 0.05}


@dataclass(frozen=True, slots=True)
class Combination:
    """One row. `pool_gib`: keys and values where there shall be so few that requests are preempted, else 0."""

    architecture: str
    mode: str = GRAPHS
    runner: str = "v2"
    backend: str = "TRITON_ATTN"
    quantization: str = NO_QUANTIZATION
    kv_type: str = "auto"
    pool_gib: float = 0.0
    must_refuse: bool = False

    @property
    def name(self) -> str:
        """What tells it from the others."""
        further = (self.quantization, f"kv {self.kv_type}", f"pool {self.pool_gib}")
        plain = (NO_QUANTIZATION, "kv auto", "pool 0.0")
        more = [part for part, usual in zip(further, plain, strict=True) if part != usual]
        return " ".join((self.architecture, self.runner, self.backend, self.mode, *more))


CUDA = (
    *(Combination("gemma-4-medium", mode, runner) for runner in ("v2", "v1") for mode in (*GRAPH_MODES, EAGER)),
    *(Combination(name, GRAPHS, runner)
      for name in ("gemma-4-medium-wrapped", "gemma-3-1b", "qwen3-1.7b", "llama-3.2-1b") for runner in ("v2", "v1")),
    Combination("gemma-4-medium", pool_gib=0.04),
    *(Combination(name, quantization="fp8_per_channel") for name in ("gemma-4-medium", "qwen3-1.7b")),
    *(Combination(name, backend="FLASH_ATTN", must_refuse=True) for name in ("qwen3-1.7b", "llama-3.2-1b")),
    Combination("gemma-4-medium", kv_type="fp8", must_refuse=True),
)  # fmt: skip
_ON_CPU = Combination("gemma-4-tiny", EAGER, "v1", "CPU_ATTN")
CPU = (
    *(replace(_ON_CPU, architecture=name)
      for name in ("gemma-4-tiny", "gemma-4-tiny-wrapped", "gemma-3-tiny", "qwen3-tiny", "llama-tiny")),
    replace(_ON_CPU, architecture="gemma-4-tiny-wrapped", mode=GRAPHS),
    replace(_ON_CPU, kv_type="fp8", must_refuse=True),
)  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run what is missing. Status 1 when a row is bad, failed, or was not refused as it must be."""
    chosen = list(_chosen(args))
    kind = {name: getattr(args, name) for name in ("device", "dtype", "vllm", "unvalidated")}
    report: dict[str, Any] = {"method": " ".join((__doc__ or "").split()), **kind, "rows": {}}
    if args.json.is_file():
        found = json.loads(args.json.read_text(encoding="utf-8"))
        if all(found.get(name) == value for name, value in kind.items()):
            report["rows"] = found.get("rows", {})
    missing = [one for one in chosen if not _done(args, report["rows"].get(one.name, {}))]
    child.say(f"{len(chosen)} combinations, {len(chosen) - len(missing)} of them done")
    lock = threading.Lock()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max(1, args.jobs)) as jobs:

        def one(number: int) -> None:
            row = _row(args, missing[number], Path(folder) / f"{number}.json")
            with lock:
                report["rows"][missing[number].name] = row
                _save(args.json, report)
            child.say(f"{missing[number].name}: {_verdict(row)}")

        list(jobs.map(one, range(len(missing))))
    rows = [(one, report["rows"][one.name]) for one in chosen]
    return 1 if any(_wrong(one, row) for one, row in rows) else 0


def _chosen(args: argparse.Namespace) -> Iterator[Combination]:
    table = CPU if args.device == "cpu" else CUDA
    filters = (args.architectures, args.modes, args.runners, args.backends)
    if not any(filters):
        yield from table
        return
    usual = (table[0].architecture, table[0].mode, table[0].runner, table[0].backend)
    values = [given.split(",") if given else [default] for given, default in zip(filters, usual, strict=True)]
    known = (tuple(ARCHITECTURES), (EAGER, *GRAPH_MODES), ("v1", "v2"), None)
    for names, allowed in zip(values, known, strict=True):
        if allowed and (unknown := [name for name in names if name not in allowed]):
            raise BenchmarkError(f"'{unknown[0]}' is none of {', '.join(allowed)}.")
    for architecture, mode, runner, backend in product(*values):
        yield Combination(
            architecture, mode, runner, backend, args.mt_vllm_quantization,
            must_refuse=backend not in ("TRITON_ATTN", "CPU_ATTN") and not args.unvalidated,
        )  # fmt: skip


def _row(args: argparse.Namespace, one: Combination, path: Path) -> dict[str, Any]:
    pool_gib = one.pool_gib or POOL_GIB[args.device]
    command = [
        "benchmark", "mt", one.architecture, "--row", "--json", str(path), "--correctness", one.mode,
        "--requests", str(args.requests), "--alone", str(args.alone), "--kv-cache-gib", str(pool_gib),
        "--device", args.device, "--dtype", args.dtype, "--runner", one.runner, "--backend", one.backend,
        "--mt-vllm-quantization", one.quantization, "--vllm", f'kv_cache_dtype="{one.kv_type}"',
    ]  # fmt: skip
    for pair in args.vllm:
        command += ["--vllm", pair]
    command += ["--unvalidated"] if args.unvalidated else []
    failure = child.run(command, args.limit_s)
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if "refused" in found:
        return {**asdict(one), **found}
    row = {**asdict(one), **(_figures(found) if "capture_mode" in found else {})}
    return row if _done(args, row) or not failure else {**row, "error": failure}


def _done(args: argparse.Namespace, row: dict[str, Any]) -> bool:
    """Whether a row came to its end: it was refused, failed its self-test, or all its requests were looked at."""
    whole = row.get("requests", 0) >= args.requests + args.alone
    return "error" not in row and ("refused" in row or bool(row.get("failed")) or whole)


def _figures(found: dict[str, Any]) -> dict[str, Any]:
    parts, info = list(found["at_once"].values()), found.get("info", {})
    counts = info.get("counts", {})
    errors = [part["errors"] for part in parts]
    return {
        "passed": found["capture_mode"], "failed": found["failed"],
        **{name: sum(part[name] for part in parts)
           for name in ("requests", "tokens", *BAD, "checked", "prefix_hits", "beyond_window_512")},
        "prompts": [min(part["shortest_prompt"] for part in parts), max(part["longest_prompt"] for part in parts)],
        "output_error": max((error.get("output", 0.0) for error in errors), default=None),
        "row_difference": max((error.get("rows", 0.0) for error in errors), default=None),
        "preempted": counts.get("preempted"), "read_early": counts.get("read_early"),
        "shared": info.get("shared"), "graphs": info.get("graphs"), "model_runner": info.get("runner"),
        "backends": info.get("backends"), "seconds": round(sum(part["seconds"] for part in parts), 1),
        "environment": found["environment"],
    } if parts else {"passed": found["capture_mode"], "failed": found["failed"]}  # fmt: skip


def _wrong(one: Combination, row: dict[str, Any]) -> bool:
    if one.must_refuse or "refused" in row:
        return "refused" not in row or not one.must_refuse
    nothing_shown = one.pool_gib and not row.get("preempted")
    return "error" in row or bool(row.get("failed")) or any(row.get(name, 1) for name in BAD) or bool(nothing_shown)


def _verdict(row: dict[str, Any]) -> str:
    if "refused" in row or "error" in row:
        return str(row.get("refused") or row["error"])
    bad = sum(row.get(name, 0) for name in BAD)
    return f"{row['passed']}, {row.get('requests', 0)} requests, {bad} bad rows, output error {row.get('output_error')}"


def _save(path: Path, report: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(report, indent=1), encoding="utf-8")
    part.replace(path)
