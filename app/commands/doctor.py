"""`surtitle doctor`: what this machine has, what is missing, and what to do about it."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
from rich.console import Console
from rich.text import Text

from app.commands.engine import engine_command, engine_env
from app.devices import list_inputs
from app.display import display_problem
from app.errors import UserError
from app.files import sessions_folder
from app.logs import log_file
from engine.presets import Preset, PresetError, load_preset, preset_ids

GIB = 2**30
TIMEOUT_S = 60
SERVER_S = 1.0
_MARKS = {"ok": ("✓", "green"), "note": ("–", "yellow"), "bad": ("✗", "red")}
_TRY_QT = "from PySide6.QtGui import QGuiApplication as Q; print(Q([]).platformName())"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `state`: "ok", "note" (a part will not work) or "bad" (nothing will)."""

    state: str
    name: str
    text: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `surtitle doctor`."""
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")


def run(args: argparse.Namespace) -> int:
    """Print the report. Status 1 when something is so wrong that no session can run."""
    found = examine()
    if args.json:
        print(json.dumps([{"state": f.state, "name": f.name, "text": f.text} for f in found], ensure_ascii=False))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for finding in found:
            mark, colour = _MARKS[finding.state]
            console.print(Text.assemble((mark, colour), f" {finding.name}: {finding.text}"))
    return 1 if any(finding.state == "bad" for finding in found) else 0


def examine() -> list[Finding]:
    """Everything, in the order of the report."""
    engine, engine_finding = examine_engine()
    return [
        _python(),
        *_qt(),
        *_microphones(),
        engine_finding,
        *_models(engine),
        *_gpus(engine),
        _memory(),
        _disk(),
        *_presets(engine),
        _log(),
        Finding("ok", "sessions", str(sessions_folder())),
    ]


def _python() -> Finding:
    version = platform.python_version()
    good = (3, 11) <= sys.version_info < (3, 14)
    return Finding("ok" if good else "bad", "Python", version if good else f"{version}; 3.11, 3.12 or 3.13 is needed")


def _qt() -> list[Finding]:
    try:
        version = importlib.metadata.version("PySide6-Essentials")
    except importlib.metadata.PackageNotFoundError:
        return [Finding("note", "Qt", "PySide6-Essentials is not installed: only `run --headless` works")]
    findings = [Finding("ok", "Qt", f"PySide6 {version}")]
    if problem := display_problem():
        return [*findings, Finding("note", "display", problem)]
    try:
        tried = subprocess.run([sys.executable, "-c", _TRY_QT], capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return [*findings, Finding("note", "display", f"Qt did not start within {TIMEOUT_S} s")]
    if tried.returncode:
        words = (tried.stderr.strip().splitlines() or [f"exit status {tried.returncode}"])[0]
        return [
            *findings,
            Finding(
                "note",
                "display",
                f"Qt cannot open a window ({words}): run `make run` once more, or use `surtitle run FILE --headless`",
            ),
        ]
    return [*findings, Finding("ok", "display", f"platform plug-in {tried.stdout.strip()}")]


def _microphones() -> list[Finding]:
    try:
        devices = list_inputs()
    except UserError as error:
        return [Finding("note", "microphones", str(error))]
    if not devices:
        return [Finding("note", "microphones", "PortAudio works, but there is no input: only files can be played")]
    return [
        Finding(
            "ok",
            "microphone",
            f"{device.key}, {device.sample_rate} Hz, {device.channels} channel(s)"
            f"{', default' if device.default else ''}",
        )
        for device in devices
    ]


def examine_engine() -> tuple[dict[str, Any], Finding]:
    """What `python -m engine doctor --json` says, {} when it says nothing."""
    try:
        asked = subprocess.run(
            engine_command(["doctor", "--json"]), env=engine_env(), capture_output=True, text=True, timeout=TIMEOUT_S
        )
        answer = json.loads(asked.stdout.strip().splitlines()[-1]) if asked.returncode == 0 else None
    except (subprocess.TimeoutExpired, OSError, ValueError, IndexError) as error:
        return {}, Finding("bad", "engine", f"it did not answer ({type(error).__name__})")
    if not isinstance(answer, dict):
        words = (asked.stderr.strip().splitlines() or [f"exit status {asked.returncode}"])[-1]
        return {}, Finding("bad", "engine", f"it does not start: {words}")
    libraries = ", ".join(f"{name} {number}" for name, number in answer.get("libraries", {}).items())
    return answer, Finding("ok", "engine", libraries or "no model library is installed")


def _models(engine: dict[str, Any]) -> list[Finding]:
    return [
        Finding("ok", "model", f"{row['name']}, {row['bytes'] / 1e6:.0f} MB at {row['where']}")
        if row["present"]
        else Finding("note", "model", f"{row['name']} is not here")
        for row in engine.get("models", [])
    ]


def _gpus(engine: dict[str, Any]) -> list[Finding]:
    """GPUs, and whether driver and installed wheels go together; nothing of an engine that did not answer."""
    if not engine:
        return []
    driver = engine.get("driver")
    if not driver:
        return [Finding("note", "GPU", "no NVIDIA driver answers: presets on vLLM need one and a GPU")]
    rows = [
        Finding("ok", "GPU", f"{name}, {free:g} of {total:g} GiB free") for name, total, free in engine.get("gpus", [])
    ]
    rows = rows or [Finding("note", "GPU", "the driver shows none: CUDA_VISIBLE_DEVICES may hide it")]
    version, wheels, built = driver["driver"], driver["wheels"], driver["torch_cuda"]
    if not wheels:
        text = f"{version} is too old for vLLM: 525 or newer runs its CUDA 12.9 wheels, 580 or newer those of CUDA 13"
        return [*rows, Finding("note", "driver", text)]
    text = f"{version} (CUDA {driver['driver_cuda']}) runs vLLM's wheels for {wheels}"
    if "vllm" not in engine.get("libraries", {}):
        return [*rows, Finding("note", "driver", f"{text}; vLLM is not installed: run `surtitle setup --gpu`")]
    if built.split(".")[0] > wheels.removeprefix("CUDA ").split(".")[0]:
        text += f", and these here are for CUDA {built}: delete their environment and run `surtitle setup --gpu`"
        return [*rows, Finding("note", "driver", text)]
    return [*rows, Finding("ok", "driver", f"{text}; installed here: for CUDA {built or 'none'}")]


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    return Finding(
        "ok",
        "memory",
        f"{memory.available / GIB:.1f} GiB free of {memory.total / GIB:.1f} GiB, {os.cpu_count()} CPU cores",
    )


def _existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _disk() -> Finding:
    folder = _existing(sessions_folder())
    free = shutil.disk_usage(folder).free / GIB
    if not os.access(folder, os.W_OK):
        return Finding("note", "disk", f"{folder} cannot be written: transcripts stay in memory only")
    return Finding("ok" if free >= 0.1 else "note", "disk", f"{free:.1f} GiB free at {folder}")


def _log() -> Finding:
    if os.access(_existing(log_file()), os.W_OK):
        return Finding("ok", "log", str(log_file()))
    return Finding("note", "log", f"{log_file()} cannot be written")


# ---------------------------------------------------------------- presets


def _presets(engine: dict[str, Any]) -> list[Finding]:
    findings = []
    usable = False
    for preset_id in preset_ids():
        try:
            preset = load_preset(preset_id)
        except PresetError as error:
            findings.append(Finding("note", "preset", str(error)))
            continue
        why = obstacles(preset, engine)
        label = f" ({preset.quality})" if preset.quality else ""
        slower = "" if why else stand_in(preset, engine)
        text = f"{preset.id}{label}: " + ("; ".join(why) if why else slower or _usable(preset, engine))
        findings.append(Finding("note" if why or slower else "ok", "preset", text))
        usable = usable or not why
    if not usable:
        findings.append(Finding("bad", "presets", "none can be used on this machine"))
    return findings


def obstacles(preset: Preset, engine: dict[str, Any]) -> list[str]:
    """Why a preset cannot be used here; empty when it can."""
    why = []
    if not engine:
        why.append("the engine does not start")
    present = {row["name"]: row["present"] for row in engine.get("models", [])}
    for model in (preset.recogniser.model, preset.translator.model):
        if present.get(model) is False:
            why.append(f"the weights of {model} are missing")
    if preset.translator.kind == "remote" and not _answers(preset.translator.url):
        why.append(f"no MT server answers at {preset.translator.url}")
    broken = engine.get("broken", {})
    if preset.translator.kind == "llamacpp" and "huggingface" in broken:
        why.append(
            f"neither llama-cpp-python ({broken['llamacpp']}) nor torch ({broken['huggingface']}) can be loaded: run "
            "`make demo`, or pip install 'surtitle[torch]'"
        )
    if gpu := engine.get("gpu_obstacles", {}).get(preset.id):
        why.append(gpu.removeprefix(f"{preset.id} ").rstrip("."))
    total = psutil.virtual_memory().total / GIB
    if preset.needs.ram_gib > total:
        why.append(f"it needs {preset.needs.ram_gib:g} GiB of memory, there are {total:.1f} GiB")
    return why


def _usable(preset: Preset, engine: dict[str, Any]) -> str:
    present = {row["name"] for row in engine.get("models", []) if row["present"]}
    absent = [model for model in preset.models if "/" in model and model not in present and not Path(model).exists()]
    fits = "fits on the GPU and can be used" if preset.gpu_gib else "can be used"
    if not absent:
        return fits
    return f"{fits}; {', '.join(absent)}: downloaded first, {preset.needs.disk_gib:g} GiB on disk for all its weights"


def stand_in(preset: Preset, engine: dict[str, Any]) -> str:
    """What takes the place of a library that cannot be loaded, "" where nothing has to."""
    why = engine.get("broken", {}).get("llamacpp")
    if preset.translator.kind != "llamacpp" or not why:
        return ""
    return (
        f"can be used, more slowly: llama-cpp-python cannot be loaded ({why}), so torch stands in; install a C++ "
        "compiler (g++) and run `make demo` again"
    )


def _answers(url: str) -> bool:
    """Whether something listens at the address of an MT server."""
    parts = urlsplit(url)
    try:
        address = parts.hostname or "", parts.port or (443 if parts.scheme == "wss" else 80)
        with socket.create_connection(address, timeout=SERVER_S):
            return True
    except (OSError, ValueError):
        return False
