"""`python -m engine doctor --json`: what the engine finds on this machine, for `surtitle doctor` and diagnostics."""

from __future__ import annotations

import argparse
import json

from engine.host import library_versions, machine


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
        }
        print(json.dumps(report))
        return 0
    for name, present, where, size in found.models:
        print(f"{name}: {f'{size / 1e6:.0f} MB at {where}' if present else 'not here'}")
    for name, number in library_versions().items():
        print(name, number)
    return 0
