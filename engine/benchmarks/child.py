"""A benchmark's part in a process of its own, with lines of progress and a time after which it is given up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

import psutil

_BEGAN = time.monotonic()


def say(text: str) -> None:
    """A line of progress, with the seconds since this process began."""
    print(f"[{time.monotonic() - _BEGAN:6.1f} s] {text}", file=sys.stderr, flush=True)


def run(words: Sequence[str], limit_s: float, program: Sequence[str] = (sys.executable, "-m", "engine")) -> str:
    """Run the engine's command line with these words; "" when it went well, else why not.

    Output goes to the standard error. What the process started ends with it, also when the time is up.
    """
    process = subprocess.Popen([*program, *words], stdout=sys.stderr)
    try:
        status = process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return f"it was ended after {limit_s:.0f} s without a result: the last lines above say how far it came"
    finally:
        _end(process)
    return f"its process ended with status {status}" if status else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        tree = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    except psutil.NoSuchProcess:
        tree = []
    if process.poll() is None:
        process.kill()
    for child in tree:
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    process.wait()
