"""An engine core's process ends with the process that started it, however that one ends.

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


def hold_on() -> None:
    """End this process as soon as its parent is gone. In a process that `multiprocessing` did not start: nothing."""
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_watch, args=(parent.sentinel,), name="lifeline", daemon=True).start()


def _watch(sentinel: int) -> None:
    wait([sentinel])
    os.kill(os.getpid(), signal.SIGKILL)


class Lifeline:
    """Mixed in front of a vLLM worker class: watches from before the model is loaded."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        hold_on()
        super().__init__(*args, **kwargs)
