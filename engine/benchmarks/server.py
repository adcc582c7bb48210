"""`surtitle benchmark server`: an MT server under the published smoke test, then with 1, 8 and 32 sessions at once.

Round trips are measured at the client, release on commit also inside the server, all by the clock but one:
`arrival_to_answer_ms` from the frame to the finished answer, `server_ms` the part of it behind the wait for a turn, and
`server_cpu_ms` what the thread computed in that part. Beside it the draft that it decided on, and how often the model
was called for it, which must be never. Any retraction fails the run. `release_beside_threads` is release on commit
alone, in the benchmark's own process without a model, beside threads that keep the interpreter busy.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import os
import platform
import re
import statistics
import sys
import time
import urllib.request
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine import __version__
from engine.benchmarks.machine import machine
from engine.benchmarks.server_client import FAST_PATH, SENTENCES, Script, Talk, talk
from engine.benchmarks.server_release import releases
from engine.benchmarks.server_subject import NotStarted, Wanted, running
from engine.files import write_atomically

_TIMES = ("queued_ms", "server_ms", "server_cpu_ms")
BUSY_THREADS = (0, 2, 8)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("--url", help="a server that runs already (default: one is started)")
    parser.add_argument("--preset", default="laptop", help="whose translator is served")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument(
        "--translator", default="", metavar="ARCHITECTURE", help="instead: random weights of these dimensions, on vLLM"
    )
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="of --translator")
    parser.add_argument("--from", dest="source", default="en")
    parser.add_argument("--to", dest="target", default="de")
    parser.add_argument("--sessions", default="1,8,32", help="numbers of sessions at once (default: 1,8,32)")
    parser.add_argument("--workers", type=int, default=0, help="drafts at once (default: by translator)")
    parser.add_argument(
        "--one-process", action="store_true", help="of --translator: its engine in the server's process"
    )
    parser.add_argument("--speed", type=float, default=4.0, help="of the smoke test, against real time (default: 4)")
    parser.add_argument("--pace", type=float, default=1.0, help="of the concurrent sessions (default: 1, real time)")
    parser.add_argument("--pause", type=float, default=1.5, help="seconds between their sentences (default: 1.5)")
    parser.add_argument("--json", type=Path, help="also write the figures and every answer of the smoke test here")


def run(args: argparse.Namespace) -> int:
    """Run it. Status 2 for bad input, 1 when a promise of the protocol was broken."""
    try:
        counts = [int(count) for count in args.sessions.split(",")]
        if min(counts) < 1 or min(args.speed, args.pace) <= 0 or args.pause < 0:
            raise ValueError
    except ValueError:
        print("--sessions takes numbers such as 1,8,32; --speed, --pace and --pause are positive.", file=sys.stderr)
        return 2
    if args.one_process and not args.translator:
        print("--one-process goes with --translator.", file=sys.stderr)
        return 2
    try:
        if args.url:
            report = _measure(args, args.url, counts)
        else:
            pair = (args.source, args.target)
            wanted = Wanted(
                args.preset,
                pair,
                args.translator,
                args.device,
                max(counts),
                args.workers,
                tuple(args.overrides),
                args.one_process,
            )
            with running(wanted) as (url, _):
                report = _measure(args, url, counts)
    except (NotStarted, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    if args.json:
        write_atomically(args.json, json.dumps(report, indent=1, ensure_ascii=False) + "\n")
        print(f"{args.json} holds every answer of the smoke test and the figures above.")
    return 0 if _sound(report) else 1


def _measure(args: argparse.Namespace, url: str, counts: Sequence[int]) -> dict[str, Any]:
    init = {"source_lang": args.source, "target_lang": args.target}
    report: dict[str, Any] = {
        "method": " ".join((__doc__ or "").split("\n\n")[1].split()),
        "command": _command(),
        "health": json.loads(_get(url, "/healthz")),
        "machine": {**machine(), "load": os.getloadavg()},
        "versions": _versions(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    asyncio.run(talk(url, init, Script.of(SENTENCES[:1], 0), args.speed, False))  # warms the fixed prompt up
    smoke = asyncio.run(talk(url, init, Script.of(SENTENCES, 0.0), args.speed, True))
    report["smoke"] = {"speed": args.speed, "summary": _summary([smoke]), "events": smoke.events}
    _show("smoke", report["smoke"]["summary"])
    report["sessions"] = []
    for count in counts:
        found = _concurrent(url, init, count, args.pace, args.pause)
        report["sessions"].append(found)
        _show(f"{count} session(s)", found["summary"])
    report["health_after"] = json.loads(_get(url, "/healthz"))
    report["release_beside_threads"] = [_beside(count) for count in BUSY_THREADS]
    return report


def _concurrent(url: str, init: dict[str, Any], count: int, pace: float, pause_s: float) -> dict[str, Any]:
    """So many sessions at once, each with its sentences in another order."""

    async def all_talk() -> list[Talk]:
        turns = [SENTENCES[at % len(SENTENCES) :] + SENTENCES[: at % len(SENTENCES)] for at in range(count)]
        talks = (talk(url, init, Script.of(sentences, pause_s), pace, False) for sentences in turns)
        return await asyncio.gather(*talks)

    before, began = _counters(url), time.perf_counter()
    talks = asyncio.run(all_talk())
    wall_s, after = time.perf_counter() - began, _counters(url)
    done = {name: after[name] - before.get(name, 0.0) for name in after}
    return {
        "sessions": count,
        "pace": pace,
        "pause_s": pause_s,
        "wall_s": round(wall_s, 2),
        "answers_per_s": round(sum(len(each.events) for each in talks) / wall_s, 2),
        "server": {name: round(value, 3) for name, value in done.items()},
        "released_tokens_per_s": round(done.get("released_tokens_total", 0.0) / wall_s, 2),
        "summary": _summary(talks),
    }


def _beside(threads: int) -> dict[str, Any]:
    answers = releases(threads)
    wall = _quantiles([answer.server_ms for answer in answers])
    cpu = _quantiles([answer.server_cpu_ms for answer in answers])
    print(f"release on commit alone beside {threads} busy thread(s): {_range(wall)} (CPU {_range(cpu)})", flush=True)
    return {"threads": threads, "count": len(answers), "server_ms": wall, "server_cpu_ms": cpu}


def _summary(talks: Sequence[Talk]) -> dict[str, Any]:
    """The published figures first, then ours."""
    events = [event for each in talks for event in each.events]
    partials = [event for event in events if not event["final"]]
    fast = [event for event in events if event["engine_calls"] == 0 and event["released"]]
    commits = [event["rtt_ms"] for event in partials if event["commit_advanced"]]
    drafts = [each for one in talks for each in _drafts_before(one.events)]
    return {
        "events": len(events),
        "finals": len(events) - len(partials),
        "retractions": sum(each.retractions for each in talks),
        "fast_path_events": sum(event["stop_reason"] == FAST_PATH for event in events),
        "fast_path_rtt_ms_median": _median([event["rtt_ms"] for event in fast]),
        "commit_rtt_ms_median": _median(commits),
        "rtt_ms_p95": _quantile([event["rtt_ms"] for event in events], 0.95),
        "errors": [error for each in talks for error in each.errors],
        "missing_finals": sum(len(SENTENCES) - len(each.finals) for each in talks),
        "partial_rtt_ms": _quantiles([event["rtt_ms"] for event in partials]),
        "final_rtt_ms": _quantiles([event["rtt_ms"] for event in events if event["final"]]),
        "release_on_commit": {
            "count": len(fast),
            "engine_calls": sum(event["engine_calls"] for event in events if event["stop_reason"] == FAST_PATH),
            **{name: _quantiles([event[name] for event in fast if event[name] is not None]) for name in _TIMES},
            "arrival_to_answer_ms": _quantiles(_spans(fast)),
            "draft_before_server_ms": _quantiles(drafts),
        },
    }


def _spans(events: Sequence[dict[str, Any]]) -> list[float]:
    return [event["queued_ms"] + event["server_ms"] for event in events if event["queued_ms"] is not None]


def _drafts_before(events: Sequence[dict[str, Any]]) -> list[float]:
    """What the draft took on which each release on commit was decided."""
    found, draft_ms = [], None
    for event in events:
        if event["engine_calls"]:
            draft_ms = event["server_ms"]
        elif event["released"] and draft_ms is not None:
            found.append(draft_ms)
    return found


def _sound(report: dict[str, Any]) -> bool:
    """No retraction, no error, every final there, no model call for a release on commit."""
    summaries = [report["smoke"]["summary"], *(found["summary"] for found in report["sessions"])]
    return not any(
        summary["retractions"] or summary["errors"] or summary["missing_finals"]
        or summary["release_on_commit"]["engine_calls"]
        for summary in summaries
    )  # fmt: skip


def _counters(url: str) -> dict[str, float]:
    """The server's counters without labels."""
    lines = re.findall(r"^surtitle_mt_(\w+_total|\w+_(?:sum|count)) (\S+)$", _get(url, "/metrics"), re.MULTILINE)
    return {name: float(value) for name, value in lines}


def _get(url: str, path: str) -> str:
    """A page of the server; a token in the address goes along."""
    parts = urlsplit(url)
    scheme = "https" if parts.scheme == "wss" else "http"
    request = urllib.request.Request(f"{scheme}://{parts.hostname}:{parts.port or 80}{path}")
    if parts.password:
        secret = base64.b64encode(f"{parts.username}:{parts.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {secret}")
    with urllib.request.urlopen(request, timeout=30) as response:
        text: str = response.read().decode()
        return text


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def _quantile(values: Sequence[float], share: float) -> float | None:
    ordered = sorted(values)
    return round(ordered[int(share * (len(ordered) - 1))], 3) if ordered else None


def _quantiles(values: Sequence[float]) -> dict[str, float | None]:
    return {"p50": _quantile(values, 0.5), "p95": _quantile(values, 0.95), "max": _quantile(values, 1.0)}


def _command() -> str:
    """What was typed, without a secret in the address."""
    words = sys.argv[sys.argv.index("server") + 1 :] if "server" in sys.argv else []
    return " ".join(["surtitle benchmark server", *(re.sub(r"//[^@/]*@", "//", word) for word in words)])


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "surtitle": __version__}
    for name in ("llama-cpp-python", "torch", "transformers", "vllm", "websockets"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _show(name: str, summary: dict[str, Any]) -> None:
    commit = summary["release_on_commit"]
    print(
        f"{name}: {summary['events']} answers, {summary['finals']} finals, {summary['retractions']} retractions, "
        f"{len(summary['errors'])} errors; partials {_range(summary['partial_rtt_ms'])}, "
        f"finals {_range(summary['final_rtt_ms'])}; {commit['count']} releases on commit in "
        f"{_range(commit['server_ms'])} (CPU {_range(commit['server_cpu_ms'])}; from arrival "
        f"{_range(commit['arrival_to_answer_ms'])}) with {commit['engine_calls']} model calls, "
        f"the drafts before them took {_range(commit['draft_before_server_ms'])}",
        flush=True,
    )


def _range(values: dict[str, float | None]) -> str:
    return "–" if values["p50"] is None else f"{values['p50']:g} ms median, {values['p95']:g} ms p95"
