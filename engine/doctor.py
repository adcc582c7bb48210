"""`python -m engine doctor --json`: what the engine finds on this machine, for `surtitle doctor` and diagnostics."""

from __future__ import annotations

import argparse
import json

from engine import fitting
from engine.gpus import driver, torch_cuda
from engine.host import library_versions, machine
from engine.mt.factory import why_not


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `doctor`."""
    parser.add_argument("--json", action="store_true", help="one JSON object instead of lines")


def run(args: argparse.Namespace) -> int:
    """Print models and libraries."""
    found = machine()
    columns = ("name", "present", "where", "bytes")
    if args.json:
        report = {
            "python": found.python,
            "cpu_count": found.cpu_count,
            "ram_gib": found.ram_gib,
            "gpus": [list(gpu) for gpu in found.gpus],
            "models": [dict(zip(columns, row, strict=True)) for row in found.models],
            "libraries": library_versions(),
            "broken": broken(),
            "driver": driver_report(),
            "gpu_obstacles": gpu_obstacles(),
        }
        print(json.dumps(report))
        return 0
    for name, present, where, size in found.models:
        print(f"{name}: {f'{size / 1e6:.0f} MB at {where}' if present else 'not here'}")
    for name, number in library_versions().items():
        print(name, number)
    for kind, why in broken().items():
        print(f"the {kind} translator cannot be loaded: {why}")
    for name, total, free in found.gpus:
        print(f"{name}: {free:g} of {total:g} GiB free")
    for name, text in driver_report().items():
        print(f"{name}: {text or 'none'}")
    for why in gpu_obstacles().values():
        print(why)
    return 0


def driver_report() -> dict[str, str]:
    """The NVIDIA driver, which of vLLM's wheels it runs, and the CUDA that the installed torch was built for."""
    known = driver()
    if known is None:
        return {}
    return {
        "driver": known.version,
        "driver_cuda": known.cuda,
        "wheels": known.flavour,
        "torch_cuda": torch_cuda(),
    }


def gpu_obstacles() -> dict[str, str]:
    """What keeps each preset from running, as far as its GPU goes."""
    return {preset.id: why for preset in fitting.shipped() if (why := fitting.obstacle(preset))}


def broken() -> dict[str, str]:
    """Why llama.cpp cannot be loaded, and why torch cannot stand in for it; empty where llama.cpp can."""
    found = {}
    for kind in ("llamacpp", "huggingface"):
        why = why_not(kind)
        if not why:
            break
        found[kind] = why
    return found
