"""`surtitle benchmark mt`: milliseconds per generated token of the translator's seams, rows included.

16 fixed prompts (short, medium, long, half of them with released target), greedy, 20 new tokens, one warm-up pass, 3
hot repeats, each seam in a process of its own; the figure of a seam is the median over its 48 requests.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.benchmarks.architectures import Heads
from engine.benchmarks.mt_subject import BenchmarkError, Subject, bandwidth, environment, subject
from engine.capture.guard import CaptureError
from engine.capture.modes import DEFAULT_CUDAGRAPH_MODE, GRAPH_MODES

SEAMS = ("hf_eager", "hf_sdpa", "hf_qk_fast", "vllm_eager", "vllm_graphs")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("model", nargs="?", default="gemma-4-e4b", help="a model's folder, or a named architecture")
    parser.add_argument("--heads", default="", help="layer.head,layer.head,… (default: the architecture's)")
    parser.add_argument("--seams", default=",".join(SEAMS), help=f"of {', '.join(SEAMS)}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--mt-vllm-cudagraph-mode", default=DEFAULT_CUDAGRAPH_MODE, choices=GRAPH_MODES)
    parser.add_argument(
        "--tensor-parallel", type=int, default=1, metavar="N", help="instead of the seams: N ranks beside one"
    )
    parser.add_argument(
        "--vllm", action="append", default=[], metavar="KEY=JSON", help="a further argument of vLLM's engine"
    )
    parser.add_argument("--one-mode", action="store_true", help="with --tensor-parallel: leave the other modes out")
    parser.add_argument("--only-ranks", type=int, default=0, help="with --tensor-parallel: only this number of ranks")
    parser.add_argument("--repeats", type=int, default=3, help="hot repeats of the 16 prompts")
    parser.add_argument("--on-off", type=int, default=10, help="repeats of the comparison with and without capture")
    parser.add_argument("--capture-only", action="store_true", help="leave out the vLLM seams without capture")
    parser.add_argument("--json", type=Path, default=Path("mt.json"), help="the artefact")
    parser.add_argument("--correctness", choices=("eager", *GRAPH_MODES), help="instead: look at every row of one mode")
    parser.add_argument("--requests", type=int, default=1000, help="requests whose rows are looked at, eight at a time")
    parser.add_argument("--alone", type=int, default=300, help="with --correctness: requests that run alone")
    parser.add_argument("--kv-cache-gib", type=float, default=2.0, help="with --correctness")
    parser.add_argument("--seam", choices=SEAMS, help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--ranks-rows", type=Path, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run it. Status 2 for bad input, 1 when a seam failed."""
    try:
        if args.seam:
            return _one_seam(args)
        if args.correctness:
            return _correctness(args)
        return _ranks(args) if args.tensor_parallel > 1 else _all_seams(args)
    except (BenchmarkError, CaptureError) as error:
        print(error, file=sys.stderr)
    except ImportError as error:
        print(f"This benchmark needs {error.name}: install surtitle[gpu] or surtitle[torch].", file=sys.stderr)
    return 2


def _subject(args: argparse.Namespace, folder: Path) -> Subject:
    try:
        heads: Heads = tuple((int(a), int(b)) for a, b in (pair.split(".") for pair in args.heads.split(",") if pair))
    except ValueError:
        raise BenchmarkError("--heads takes layer.head pairs, for example 11.3,6.5.") from None
    try:
        further = {name: json.loads(value) for name, value in (pair.split("=", 1) for pair in args.vllm)}
    except ValueError:
        raise BenchmarkError("--vllm takes KEY=JSON, for example --vllm 'quantization=\"fp8\"'.") from None
    if args.tensor_parallel < 1:
        raise BenchmarkError("--tensor-parallel takes the number of ranks, 1 or more.")
    chosen = subject(args.model, folder, args.device, args.dtype, heads)
    return dataclasses.replace(chosen, tensor_parallel=args.tensor_parallel, vllm=further)


def _correctness(args: argparse.Namespace) -> int:
    from engine.benchmarks import mt_correctness

    with tempfile.TemporaryDirectory() as folder:
        wanted = {8: args.requests, 1: args.alone}
        report = mt_correctness.run(
            _subject(args, Path(folder)), args.correctness, wanted, args.json, args.kv_cache_gib
        )
    bad = report["failed"] or mt_correctness.bad_rows(report)
    print(json.dumps({name: value for name, value in report.items() if name != "environment"}))
    return 1 if bad else 0


def _one_seam(args: argparse.Namespace) -> int:
    """In a process of its own: measure and write what was found."""
    found: dict[str, Any]
    chosen = _subject(args, args.work)
    if args.ranks_rows:
        from engine.benchmarks import mt_ranks

        modes = _modes(args) if args.tensor_parallel > 1 else [args.mt_vllm_cudagraph_mode]
        found = mt_ranks.measure(chosen, modes, args.repeats, args.requests, args.ranks_rows, args.capture_only)
    elif args.seam.startswith("hf"):
        from engine.benchmarks import mt_hf

        found = mt_hf.measure(chosen, args.seam, args.repeats)
    else:
        from engine.benchmarks import mt_vllm

        eager = args.seam == "vllm_eager"
        mode, only = args.mt_vllm_cudagraph_mode, args.capture_only
        found = mt_vllm.measure(chosen, eager, mode, args.repeats, args.on_off, only)
    found |= {"environment": environment(args.device), "bandwidth": bandwidth(args.device)}
    args.json.write_text(json.dumps(found), encoding="utf-8")
    return 0


def _ranks(args: argparse.Namespace) -> int:
    """One rank, then so many, each in a process of its own; then their rows side by side."""
    from engine.benchmarks import mt_ranks

    path: Path = args.json
    kind = {"model": args.model, "dtype": args.dtype, "vllm": args.vllm, "modes": _modes(args)}
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    report: dict[str, Any] = {
        "method": " ".join((mt_ranks.__doc__ or "").split()),
        "command": "python -m engine benchmark mt " + " ".join(sys.argv[3:]),
        **kind,
        "ranks": found["ranks"] if all(found.get(name) == value for name, value in kind.items()) else {},
    }
    counts = (1, args.tensor_parallel) if not args.only_ranks else (args.only_ranks,)
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            if "captured" not in report["ranks"].get(str(count), {}):
                report["ranks"][str(count)] = _in_process(args, "vllm_graphs", Path(folder), count)
                mt_ranks.show(count, report["ranks"][str(count)])
                path.write_text(json.dumps(report, indent=1), encoding="utf-8")
    if args.only_ranks or any("error" in found for found in report["ranks"].values()):
        return 0 if args.only_ranks else 1
    report["rows"] = mt_ranks.compare(*(_rows_file(path, count) for count in counts))
    path.write_text(json.dumps(report, indent=1), encoding="utf-8")
    print(json.dumps(report["rows"]))
    return 1 if mt_ranks.bad(report) else 0


def _modes(args: argparse.Namespace) -> list[str]:
    """The mode that is timed, then the others whose rows are looked at."""
    first = args.mt_vllm_cudagraph_mode
    return [first] if args.one_mode else [first, *(mode for mode in GRAPH_MODES if mode != first)]


def _rows_file(path: Path, ranks: int) -> Path:
    return path.with_name(f"{path.stem}-rows-{ranks}.npz")


def _all_seams(args: argparse.Namespace) -> int:
    seams = args.seams.split(",")
    if unknown := [seam for seam in seams if seam not in SEAMS]:
        raise BenchmarkError(f"There is no seam '{unknown[0]}'; seams are {', '.join(SEAMS)}.")
    report: dict[str, Any] = {
        "method": " ".join((__doc__ or "").split("\n\n")[1].split()),
        "model": args.model,
        "seams": {},
    }
    report["command"] = "python -m engine benchmark mt " + " ".join(sys.argv[3:])
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        chosen = _subject(args, Path(folder))
        report["weights"] = (
            f"seeded random weights at the dimensions of {args.model}" if chosen.random else "the model's own"
        )
        for seam in seams:
            found = _in_process(args, seam, Path(folder))
            status |= "error" in found
            report["seams"][seam] = found
            _add_figures(report, chosen)
            args.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
            _print(seam, found)
    return status


def _in_process(args: argparse.Namespace, seam: str, folder: Path, ranks: int = 0) -> dict[str, Any]:
    """A seam's findings; with `ranks`, those of an engine of so many, its rows beside them in `folder`."""
    path = folder / f"{seam}{ranks or ''}.json"
    command = [sys.executable, "-m", "engine", "benchmark", "mt", args.model, "--seam", seam, "--json", str(path)]
    for name in ("heads", "device", "dtype", "mt_vllm_cudagraph_mode", "repeats", "on_off"):
        command += [f"--{name.replace('_', '-')}", str(getattr(args, name))]
    for pair in args.vllm:
        command += ["--vllm", pair]
    command += ["--capture-only"] if args.capture_only else []
    command += ["--one-mode"] if args.one_mode else []
    if ranks:
        rows = _rows_file(args.json, ranks)
        command += ["--tensor-parallel", str(ranks), "--requests", str(args.requests), "--ranks-rows", str(rows)]
    began = time.monotonic()
    done = subprocess.run([*command, "--work", str(folder)], stdout=sys.stderr, check=False)
    if done.returncode or not path.is_file():
        return {"error": f"the process of this seam ended with status {done.returncode}"}
    return {**json.loads(path.read_text(encoding="utf-8")), "seconds": round(time.monotonic() - began, 1)}


def _add_figures(report: dict[str, Any], chosen: Subject) -> None:
    """Medians, ratios and the memory floor over all seams so far."""
    medians: dict[str, float] = {}
    for seam, found in report["seams"].items():
        parts = {seam: found} if "rows" in found else {
            seam: found.get("captured", {}), f"{seam}_without_capture": found.get("plain", {})
        }  # fmt: skip
        for name, part in parts.items():
            if "rows" in part:
                medians[name] = round(statistics.median(row["ms_per_token"] for row in part["rows"]), 3)
    report["median_ms_per_token"] = medians
    if (ours := medians.get("vllm_graphs")) is not None:
        hf = {name: value for name, value in medians.items() if name.startswith("hf")}
        report["vllm_graphs_against"] = {
            name: round(value / ours, 2) for name, value in medians.items() if name != "vllm_graphs"
        }
        if hf:
            report["fastest_hf_seam"] = min(hf, key=lambda name: hf[name])
        if "plain" in report["seams"]["vllm_graphs"]:
            _add_costs(report, chosen)


def _add_costs(report: dict[str, Any], chosen: Subject) -> None:
    graphs = report["seams"]["vllm_graphs"]
    plain, captured = graphs["plain"], graphs["captured"]
    report["capture_cost_percent"] = {
        "tap_alone": round(100 * (captured["without_rows_ms"] / plain["without_rows_ms"] - 1), 2),
        "tap_and_rows": round(100 * (captured["with_rows_ms"] / plain["without_rows_ms"] - 1), 2),
    }
    if graphs["bandwidth"]:
        from engine.benchmarks.random_weights import decode_bytes

        size = decode_bytes(chosen.config())
        floor_ms = 1000 * size / graphs["bandwidth"]
        report["memory_floor"] = {
            "bytes_per_step": size, "bytes_per_s": graphs["bandwidth"], "floor_ms": round(floor_ms, 3),
            "decode_step_ms": round(captured["decode_step_ms"], 3),
            "ratio": round(captured["decode_step_ms"] / floor_ms, 2),
        }  # fmt: skip


def _print(seam: str, found: dict[str, Any]) -> None:
    if "error" in found:
        print(f"{seam:12} {found['error']}")
    elif "rows" in found:
        print(f"{seam:12} {statistics.median(row['ms_per_token'] for row in found['rows']):8.2f} ms per token")
    else:
        for name in ("plain", "captured"):
            rows = found.get(name, {}).get("rows", [])
            figure = f"{statistics.median(row['ms_per_token'] for row in rows):8.2f} ms per token" if rows else "failed"
            print(f"{seam:12} {figure} ({name}, {found.get(name, {}).get('capture_mode', '')})")
