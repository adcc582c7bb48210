"""An engine core's processes end with the process that started the engine, however that one ends.

vLLM's engine core waits for ever for a parent that was killed, and keeps its GPU memory. The process group that the
engine process leads is killed with it by the app, but not when the app is gone too, nor outside of the app.
"""

from __future__ import annotations

import os
import signal
import threading
from multiprocessing import parent_process
from multiprocessing.connection import wait
from typing import Any

from engine.capture.cause import note_steps, noted

CORE = "EngineCore"  # how vLLM names the process; workers may be its children


def hold_on() -> None:
    """End this process as soon as its parent is gone, and the engine core above it as soon as that one's parent is.

    In a process that `multiprocessing` did not start: nothing.
    """
    parent = parent_process()
    if parent is None:
        return
    _start(parent.sentinel, [])
    if parent.name.startswith(CORE) and hasattr(os, "pidfd_open"):
        import psutil

        core = psutil.Process(os.getppid())
        _start(os.pidfd_open(core.ppid()), [core.pid])


def _start(sentinel: Any, above: list[int]) -> None:
    threading.Thread(target=_watch, args=(sentinel, above), name="lifeline", daemon=True).start()


def _watch(sentinel: Any, above: list[int]) -> None:
    wait([sentinel])
    for pid in (*above, os.getpid()):
        os.kill(pid, signal.SIGKILL)


class Lifeline:
    """Mixed in front of a vLLM worker class: watches from before the model is loaded, and notes why it cannot start."""

    def __init__(self, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        hold_on()
        file = getattr(vllm_config.additional_config, "cause_file", "")
        with noted(file):
            super().__init__(vllm_config, *args, **kwargs)  # type: ignore[call-arg]
        note_steps(self, file)
