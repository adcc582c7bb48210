"""`surtitle benchmark mt`: milliseconds per generated token of the translator's seams, rows included.

16 fixed prompts (short, medium, long, half of them with released target), greedy, 20 new tokens, one warm-up pass, 3
hot repeats, each seam in a process of its own; the figure of a seam is the median over its 48 requests.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from engine.benchmarks import child, mt_report
from engine.benchmarks.architectures import Heads
from engine.benchmarks.mt_subject import BenchmarkError, Subject, bandwidth, environment, subject
from engine.capture.guard import CaptureError
from engine.capture.modes import DEFAULT_CUDAGRAPH_MODE, GRAPH_MODES
from engine.capture.settings import NO_QUANTIZATION, QUANTIZATIONS

SEAMS = ("hf_eager", "hf_sdpa", "hf_qk_fast", "vllm_eager", "vllm_graphs")
RUNNERS = {"auto": "", "v1": "0", "v2": "1"}
# What tells artefacts apart, and what those ran with that do not say it.
KIND = {
    "model": None, "heads": "", "device": "cuda", "dtype": None, "vllm": None, "backend": "", "runner": "auto",
    "mt_vllm_cudagraph_mode": DEFAULT_CUDAGRAPH_MODE, "mt_vllm_quantization": NO_QUANTIZATION, "own_process": False,
}  # fmt: skip


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
    parser.add_argument("--mt-vllm-quantization", default=NO_QUANTIZATION, choices=QUANTIZATIONS)
    parser.add_argument(
        "--runner",
        choices=tuple(RUNNERS),
        default="auto",
        help="vLLM's model runner, by its own choice or not",
    )
    parser.add_argument("--backend", default="", help="vLLM's attention backend, where it is not the validated one")
    parser.add_argument("--own-process", action="store_true", help="vLLM in a process of its own, as presets have it")
    parser.add_argument("--unvalidated", action="store_true", help="go on with what row capture was not validated with")
    parser.add_argument("--matrix", action="store_true", help="instead: correctness over many combinations")
    parser.add_argument("--architectures", default="", help="with --matrix: named architectures, comma between them")
    parser.add_argument("--runners", default="", help="with --matrix: of v1, v2")
    parser.add_argument("--backends", default="", help="with --matrix: attention backends")
    parser.add_argument("--modes", default="", help="with --matrix: of eager, " + ", ".join(GRAPH_MODES))
    parser.add_argument("--jobs", type=int, default=1, help="with --matrix: combinations at a time")
    parser.add_argument("--limit-s", type=float, default=900, help="time after which one process is given up")
    parser.add_argument("--one-mode", action="store_true", help="with --tensor-parallel: leave the other modes out")
    parser.add_argument("--only-ranks", type=int, default=0, help="with --tensor-parallel: only this number of ranks")
    parser.add_argument("--repeats", type=int, default=3, help="hot repeats of the 16 prompts")
    parser.add_argument("--on-off", type=int, default=10, help="repeats of the comparison with and without capture")
    parser.add_argument("--capture-only", action="store_true", help="leave out the vLLM seams without capture")
    parser.add_argument("--json", type=Path, help="keep the figures here; a run that finds the file goes on with it")
    parser.add_argument("--correctness", choices=("eager", *GRAPH_MODES), help="instead: look at every row of one mode")
    parser.add_argument("--requests", type=int, default=1000, help="requests whose rows are looked at, eight at a time")
    parser.add_argument("--alone", type=int, default=300, help="with --correctness: requests that run alone")
    parser.add_argument("--kv-cache-gib", type=float, default=2.0, help="with --correctness")
    parser.add_argument("--seam", choices=SEAMS, help=argparse.SUPPRESS)
    parser.add_argument("--ranks-rows", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Run it. Status 2 for bad input, 1 when a seam failed."""
    if args.json is not None:
        return _run(args)
    with tempfile.TemporaryDirectory() as folder:
        args.json = Path(folder) / "mt.json"
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    try:
        _choose_runner(args.runner)
        if args.seam:
            return _one_seam(args)
        if args.matrix:
            from engine.benchmarks import mt_matrix

            return mt_matrix.run(args)
        if args.correctness:
            return _correctness(args)
        return _ranks(args) if args.tensor_parallel > 1 else _all_seams(args)
    except (BenchmarkError, CaptureError) as error:
        print(error, file=sys.stderr)
    except ImportError as error:
        print(f"This benchmark needs {error.name}: install surtitle[gpu] or surtitle[torch].", file=sys.stderr)
    return 2


def _choose_runner(runner: str) -> None:
    """vLLM takes this from its environment alone; it is set before vLLM is imported, for this process and its own."""
    if RUNNERS[runner]:
        os.environ["VLLM_USE_V2_MODEL_RUNNER"] = RUNNERS[runner]


def _subject(args: argparse.Namespace) -> Subject:
    try:
        heads: Heads = tuple((int(a), int(b)) for a, b in (pair.split(".") for pair in args.heads.split(",") if pair))
    except ValueError:
        raise BenchmarkError("--heads takes layer.head pairs, for example 11.3,6.5.") from None
    try:
        further = {name: json.loads(value) for name, value in (pair.split("=", 1) for pair in args.vllm)}
    except ValueError:
        raise BenchmarkError("--vllm takes KEY=JSON, for example --vllm 'quantization=\"fp8\"'.") from None
    if args.backend:
        further["attention_backend"] = args.backend
    if args.tensor_parallel < 1:
        raise BenchmarkError("--tensor-parallel takes the number of ranks, 1 or more.")
    chosen = subject(args.model, None, args.device, args.dtype, heads)
    return dataclasses.replace(
        chosen, tensor_parallel=args.tensor_parallel, vllm=further, quantization=args.mt_vllm_quantization,
        unvalidated=args.unvalidated, own_process=args.own_process,
    )  # fmt: skip


def _correctness(args: argparse.Namespace) -> int:
    from engine.benchmarks import mt_correctness

    wanted = {8: args.requests, 1: args.alone}
    try:
        report = mt_correctness.run(_subject(args), args.correctness, wanted, args.json, args.kv_cache_gib)
    except (BenchmarkError, CaptureError) as error:
        if not args.row:
            raise
        args.json.write_text(json.dumps({"refused": str(error)}), encoding="utf-8")
        return 0
    bad = report["failed"] or mt_correctness.bad_rows(report)
    print(json.dumps({name: value for name, value in report.items() if name != "environment"}))
    return 1 if bad else 0


def _one_seam(args: argparse.Namespace) -> int:
    """In a process of its own: measure and write what was found, so far and at the end."""
    found: dict[str, Any] = {}
    chosen = _subject(args)

    def save(so_far: dict[str, Any]) -> None:
        part = args.json.with_suffix(".part")
        part.write_text(json.dumps(so_far), encoding="utf-8")
        part.replace(args.json)

    if args.ranks_rows:
        from engine.benchmarks import mt_ranks

        modes = _modes_of(args, args.tensor_parallel)
        found = json.loads(args.json.read_text(encoding="utf-8")) if args.json.is_file() else {}
        only, rows = args.capture_only, args.ranks_rows
        found = mt_ranks.measure(chosen, modes, args.repeats, args.requests, rows, only, save, found)
    elif args.seam.startswith("hf"):
        from engine.benchmarks import mt_hf

        found = mt_hf.measure(chosen, args.seam, args.repeats)
    else:
        from engine.benchmarks import mt_vllm

        eager = args.seam == "vllm_eager"
        mode, only = args.mt_vllm_cudagraph_mode, args.capture_only
        found = mt_vllm.measure(chosen, eager, mode, args.repeats, args.on_off, only, save)
    save(found | {"environment": environment(args.device), "bandwidth": bandwidth(args.device)})
    return 0


def _ranks(args: argparse.Namespace) -> int:
    """One rank, then so many, each in a process of its own; then their rows side by side."""
    from engine.benchmarks import mt_ranks

    path: Path = args.json
    report: dict[str, Any] = {
        "method": " ".join((mt_ranks.__doc__ or "").split()),
        "command": _command(),
        **_kind(args),
        "ranks": _kept(args, "ranks", _kind(args)),
    }
    counts = (1, args.tensor_parallel) if not args.only_ranks else (args.only_ranks,)
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            before = report["ranks"].get(str(count), {})
            if "error" in before or mt_ranks.missing(before, _modes_of(args, count), args.capture_only):
                report["ranks"][str(count)] = _in_process(args, "vllm_graphs", Path(folder), count, before)
                mt_ranks.show(count, report["ranks"][str(count)])
                _write(path, report)
    if any("error" in found for found in report["ranks"].values()):
        return 1
    if args.only_ranks:
        return 0
    report["rows"] = mt_ranks.compare(*(_rows_file(path, count) for count in counts))
    _write(path, report)
    print(json.dumps(report["rows"]))
    return 1 if mt_ranks.bad(report) else 0


def _modes_of(args: argparse.Namespace, ranks: int) -> list[str]:
    """The mode that is timed, then the others whose rows are looked at, of several ranks."""
    first = args.mt_vllm_cudagraph_mode
    return [first, *(mode for mode in GRAPH_MODES if mode != first)] if ranks > 1 and not args.one_mode else [first]


def _rows_file(path: Path, ranks: int) -> Path:
    return path.with_name(f"{path.stem}-rows-{ranks}.npz")


def _all_seams(args: argparse.Namespace) -> int:
    """Every seam, each in a process of its own; those that the artefact holds already are not run again."""
    seams = args.seams.split(",")
    if unknown := [seam for seam in seams if seam not in SEAMS]:
        raise BenchmarkError(f"There is no seam '{unknown[0]}'; seams are {', '.join(SEAMS)}.")
    kind = {**_kind(args), "capture_only": args.capture_only}
    report: dict[str, Any] = {
        "method": " ".join((__doc__ or "").split("\n\n")[1].split()),
        **kind,
        "seams": _kept(args, "seams", kind),
        "command": _command(),
    }
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        chosen = _subject(args)
        report["weights"] = (
            f"seeded random weights at the dimensions of {args.model}" if chosen.random else "the model's own"
        )
        for seam in seams:
            before = report["seams"].get(seam, {})
            if "environment" in before and "error" not in before:
                continue
            found = _in_process(args, seam, Path(folder))
            status |= "error" in found
            report["seams"][seam] = found
            mt_report.add_figures(report, chosen)
            _write(args.json, report)
            mt_report.show(seam, found)
    return status


def _kind(args: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(args, name) for name in KIND}


def _kept(args: argparse.Namespace, part: str, kind: dict[str, Any]) -> dict[str, Any]:
    """What the artefact holds of a run of the same kind."""
    found: dict[str, Any] = json.loads(args.json.read_text(encoding="utf-8")) if args.json.is_file() else {}
    alike = all(found.get(name, KIND.get(name)) == value for name, value in kind.items())
    return dict(found.get(part, {})) if alike else {}


def _in_process(
    args: argparse.Namespace, seam: str, folder: Path, ranks: int = 0, before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A seam's findings; with `ranks`, those of an engine of so many, its rows beside them in `folder`.

    Of a process that failed: what it had saved, with the reason as "error". `before`: what such a one had saved.
    """
    path = folder / f"{seam}{ranks or ''}.json"
    if before and (kept := {name: value for name, value in before.items() if name != "error"}):
        path.write_text(json.dumps(kept), encoding="utf-8")
    command = ["benchmark", "mt", args.model, "--seam", seam, "--json", str(path)]
    for name in (
        "heads", "device", "dtype", "mt_vllm_cudagraph_mode", "mt_vllm_quantization", "runner", "backend", "repeats",
        "on_off",
    ):  # fmt: skip
        command += [f"--{name.replace('_', '-')}={getattr(args, name)}"]
    for pair in args.vllm:
        command += ["--vllm", pair]
    for flag in ("capture_only", "one_mode", "unvalidated", "own_process"):
        command += [f"--{flag.replace('_', '-')}"] if getattr(args, flag) else []
    if ranks:
        rows = _rows_file(args.json, ranks)
        command += ["--tensor-parallel", str(ranks), "--requests", str(args.requests), "--ranks-rows", str(rows)]
    began = time.monotonic()
    failure = child.run(command, args.limit_s)
    found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    found["seconds"] = round(time.monotonic() - began, 1)
    return {**found, "error": failure} if failure else found


def _write(path: Path, report: dict[str, Any]) -> None:
    path.write_text(json.dumps(report, indent=1), encoding="utf-8")


def _command() -> str:
    return "python -m engine benchmark mt " + " ".join(sys.argv[3:])
