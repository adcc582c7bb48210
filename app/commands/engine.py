"""Commands that belong to the engine: handed over to `python -m engine`, whose exit status becomes ours."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

COMMANDS = {
    "benchmark": "measure speed: a whole session, the translator, the window, …",
    "evaluate": "score session logs: quality, latency, erasure",
    "replay": "drive the translator from text with simulated recognition",
    "trace-plot": "draw the attention of one traced utterance",
    "mt-server": "serve a translator to other programs",
    "calibrate": "find a model's translation heads",
}


def engine_command(words: Sequence[str]) -> list[str]:
    """The command line. `-P`: a folder `engine` where the user happens to stand is not ours."""
    return [sys.executable, "-P", "-m", "engine", *words]


def engine_env() -> dict[str, str]:
    """The environment in which the engine package beside this one is found."""
    root = str(Path(__file__).resolve().parents[2])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def run_engine_command(words: Sequence[str]) -> int:
    """Run it on this terminal. Ctrl-C reaches it directly, and we wait for what it makes of that."""
    with subprocess.Popen(engine_command(words), env=engine_env()) as process:
        while process.returncode is None:
            with contextlib.suppress(KeyboardInterrupt):
                process.wait()
    return process.returncode if process.returncode >= 0 else 128 - process.returncode
