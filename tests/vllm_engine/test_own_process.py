"""An engine in a process of its own: nothing of it outlives the process that started it, however that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

START = """
import sys
from pathlib import Path

import psutil

from engine.benchmarks.mt_subject import subject
from engine.capture.guard import CaptureError
from engine.capture.start import start

if __name__ == "__main__":
    chosen = subject("qwen3-tiny", Path(sys.argv[1]), "cpu", "float32")
    settings = chosen.settings(enforce_eager=True, own_process=True, max_model_len=256, kv_cache_gib=0.05)
    engine = start(settings)
    engine.on_failure = lambda sentence: print("told:", sentence, flush=True)
    assert engine.mode.label == "eager/passed", engine.mode
    print("children", *(child.pid for child in psutil.Process().children(recursive=True)), flush=True)
    while sys.stdin.readline() == "generate\\n":
        try:
            engine.generate([5] * 30, 200, ignore_end=True)
            print("answered", flush=True)
        except CaptureError as error:
            print("refused:", error, flush=True)
    engine.close()
    print("closed", flush=True)
"""
ROOT = Path(__file__).parents[2]
GONE_S = 60.0


@pytest.mark.parametrize("end", ["close", "kill"])
def test_its_processes_end_with_it(end: str, tmp_path: Path) -> None:
    with started(tmp_path) as (parent, children):
        if end == "close":
            parent.communicate("\n", timeout=GONE_S)
            assert parent.returncode == 0
        else:
            parent.send_signal(signal.SIGKILL)
    all_gone(children)


@pytest.mark.parametrize("while_it", ["works", "idles"])
def test_who_waits_for_an_engine_core_that_is_killed_is_told(while_it: str, tmp_path: Path) -> None:
    with started(tmp_path) as (parent, children):
        assert parent.stdin is not None
        assert parent.stdout is not None
        (core,) = (child for child in children if "EngineCore" in " ".join(child.cmdline()))
        if while_it == "works":
            parent.stdin.write("generate\n")
            parent.stdin.flush()
            time.sleep(0.05)
        core.send_signal(signal.SIGKILL)
        if while_it == "idles":
            assert parent.stdout.readline().startswith("told: The process of the vLLM engine has ended")
        rest, _ = parent.communicate("generate\ngenerate\n", timeout=GONE_S)
        answers = [line for line in rest.splitlines() if line.startswith(("answered", "refused"))]
        assert len(answers) == (3 if while_it == "works" else 2)
        assert all(answer.startswith("refused: The process of the vLLM engine has ended") for answer in answers)
        assert rest.count("told:") == (while_it == "works")
        assert "closed" in rest
        assert parent.returncode == 0
    all_gone(children)


@contextmanager
def started(folder: Path) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """A process with an engine, and that engine's processes."""
    script = folder / "start.py"
    script.write_text(START)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, script, folder], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        words = next(line for line in parent.stdout if line.startswith("children")).split()
        children = [psutil.Process(int(pid)) for pid in words[1:]]
        assert len(children) > 1
        yield parent, children


def all_gone(children: list[psutil.Process]) -> None:
    deadline = time.monotonic() + GONE_S
    while alive := [child.pid for child in children if running(child)]:
        assert time.monotonic() < deadline, f"still there: {alive}"
        time.sleep(0.1)


def running(process: psutil.Process) -> bool:
    """Not gone, and no zombie that only waits to be collected."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
