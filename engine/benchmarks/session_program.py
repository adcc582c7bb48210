"""`surtitle benchmark session --terminal`: the whole program on a recording, as a person starts it."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.benchmarks.lag import session_figures
from engine.benchmarks.machine import machine
from engine.benchmarks.processes import Sampler
from engine.benchmarks.session_chain import quantiles
from engine.benchmarks.session_report import processes
from engine.host import library_versions
from engine.presets import resources
from engine.schemas import CaptionLine, EndLine, LogError, SessionLine, read_log


def run(args: argparse.Namespace) -> int:
    """Run the session and print its figures. Status 1 when the session failed."""
    recording = args.file or min((resources() / "recordings").glob("*.flac"))
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "session.jsonl"
        if args.minutes:
            recording = _looped(recording, args.minutes, Path(folder) / "looped.flac")
        command = [sys.executable, "-m", "app.cli", "run", str(recording), "--preset", args.preset]
        command += ["--from", args.source, "--to", args.target, "--log", str(log)]
        command += [] if args.window else ["--headless"]
        command += ["--fast"] if args.fast else []
        started = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=Path.cwd()) as process:
            sampler = Sampler(process.pid)
            status = process.wait()
            sampler.stop()
        total_s = time.monotonic() - started
        if status:
            print(f"The session ended with status {status}.", file=sys.stderr)
            return 1
        try:
            lines = read_log(log)
        except LogError as error:
            print(error, file=sys.stderr)
            return 1
    if not any(isinstance(line, EndLine) for line in lines):
        print("The session's log has no end: the program was killed.", file=sys.stderr)
        return 1
    figures = figures_of(lines, sampler, total_s, args)
    show(figures)
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


def _looped(recording: Path, minutes: float, target: Path) -> Path:
    """The recording again and again, as one file."""
    import soundfile

    samples, rate = soundfile.read(recording, dtype="int16")
    with soundfile.SoundFile(target, "w", rate, 1 if samples.ndim == 1 else samples.shape[1]) as file:
        for _ in range(max(1, round(minutes * 60 * rate / len(samples)))):
            file.write(samples)
    return target


def figures_of(lines: list[Any], sampler: Sampler, total_s: float, args: argparse.Namespace) -> dict[str, Any]:
    """What the log and the processes show."""
    captions = [line for line in lines if isinstance(line, CaptionLine)]
    session = next(line for line in lines if isinstance(line, SessionLine))
    end = next(line for line in lines if isinstance(line, EndLine))
    stages: dict[str, list[float]] = {}
    for caption in captions:
        for name, value in caption.stages.items():
            stages.setdefault(name, []).append(value)
    engine_cpu = sum(usage.cpu_s for usage in sampler.usage.values() if usage.name not in ("app", "resource tracker"))
    return {
        "preset": session.preset,
        "pair": f"{session.source_lang}-{session.target_lang}",
        "pace": "fast" if args.fast else "real",
        "window": args.window,
        "audio_s": end.audio_s,
        "session_wall_s": end.wall_s,
        "ready_s": session.info.get("load_s"),
        "total_s": round(total_s, 2),
        "real_time_factor": round(engine_cpu / end.audio_s, 3),
        **asdict(session_figures(captions, session.target_lang)),
        "stage_ms": {name: quantiles(values) for name, values in stages.items()},
        **processes(sampler),
        "machine": machine(),
        "versions": library_versions(),
    }


def show(figures: dict[str, Any]) -> None:
    """Print a table."""
    table = Table(title=f"{figures['preset']} {figures['pair']}, {figures['pace']} pace", show_header=False)
    for name, value in figures.items():
        if name in ("processes", "stage_ms", "versions", "machine"):
            continue
        table.add_row(name.replace("_", " "), f"{value:.3g}" if isinstance(value, float) else str(value))
    for name, times in figures["stage_ms"].items():
        table.add_row(name, f"p50 {times['p50']:.1f}, p95 {times['p95']:.1f}")
    for usage in figures["processes"]:
        grown = "" if usage["drift_mib"] is None else f", grown by {usage['drift_mib']} MiB"
        table.add_row(f"process {usage['name']}", f"{usage['cpu_s']} CPU s, peak {usage['peak_mib']} MiB{grown}")
    table.add_row("machine", f"{figures['machine']['cpu']}, {figures['machine']['cores']} cores")
    Console().print(table)
