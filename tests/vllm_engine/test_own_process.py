"""An engine in a process of its own: nothing of it outlives the process that started it, however that one ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

START = """
import sys
from pathlib import Path

import psutil

from engine.benchmarks.mt_subject import subject
from engine.capture.start import start

if __name__ == "__main__":
    chosen = subject("qwen3-tiny", Path(sys.argv[1]), "cpu", "float32")
    settings = chosen.settings(enforce_eager=True, own_process=True, max_model_len=256, kv_cache_gib=0.05)
    engine = start(settings)
    assert engine.mode.label == "eager/passed", engine.mode
    print("children", *(child.pid for child in psutil.Process().children(recursive=True)), flush=True)
    sys.stdin.readline()
    engine.close()
    print("closed", flush=True)
"""
ROOT = Path(__file__).parents[2]
GONE_S = 60.0


@pytest.mark.parametrize("end", ["close", "kill"])
def test_its_processes_end_with_it(end: str, tmp_path: Path) -> None:
    script = tmp_path / "start.py"
    script.write_text(START)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, script, tmp_path], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        words = next(line for line in parent.stdout if line.startswith("children")).split()
        children = [psutil.Process(int(pid)) for pid in words[1:]]
        assert len(children) > 1
        if end == "close":
            parent.communicate("\n", timeout=GONE_S)
            assert parent.returncode == 0
        else:
            parent.send_signal(signal.SIGKILL)
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
