"""How a session ends: the engine is asked to go, or killed while it works; and when all that it held is free again."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import psutil

from engine.benchmarks.gpu_memory import GpuMemory
from engine.benchmarks.session_play import EngineProcess
from engine.messages import Shutdown, Stop

LIMIT_S = 60.0
POLL_S = 0.02
FREE_GIB = 0.1  # as much more than before counts as free: the driver keeps a little for itself


def stop(engine: EngineProcess, gpu: GpuMemory | None) -> dict[str, Any]:
    """Finish the session, then leave. Raises `BenchmarkError` when the engine dies instead."""
    began_s = time.monotonic()
    engine.send(Stop())
    stopped = engine.wait(lambda record: record.stopped_s is not None, LIMIT_S)
    drained_s = time.monotonic() - began_s
    tree = [psutil.Process(engine.pid), *engine.descendants()]
    left_s = time.monotonic()
    engine.send(Shutdown())
    return {
        "how": "stopped",
        "drained_s": round(drained_s, 2) if stopped else None,
        **until_free(tree, gpu, left_s),
    }


def kill(engine: EngineProcess, gpu: GpuMemory | None) -> dict[str, Any]:
    """SIGKILL to the engine process alone; what it has started must end by itself."""
    tree = engine.descendants()
    held_gib = gpu.used_gib() - gpu.idle_gib if gpu else None
    while_busy = sorted(engine.record.running)
    began_s = time.monotonic()
    engine.kill()
    return {
        "how": "killed (SIGKILL to the engine process alone)",
        "while": while_busy,
        "descendants": len(tree),
        "gpu_held_gib": None if held_gib is None else round(held_gib, 2),
        **until_free(tree, gpu, began_s),
    }


def until_free(tree: list[psutil.Process], gpu: GpuMemory | None, began_s: float) -> dict[str, Any]:
    """Seconds from `began_s` until these processes are gone, and until the GPU's memory is back; None when it takes
    longer than a minute. What is left is ended then."""
    gone_s: float | None = None
    free_s: float | None = None
    while time.monotonic() < began_s + LIMIT_S and (gone_s is None or (gpu and free_s is None)):
        if gone_s is None and not any(map(alive, tree)):
            gone_s = round(time.monotonic() - began_s, 2)
        if gpu and free_s is None and gpu.used_gib() <= gpu.idle_gib + FREE_GIB:
            free_s = round(time.monotonic() - began_s, 2)
        time.sleep(POLL_S)
    left = [process for process in tree if alive(process)]
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return {"processes_gone_s": gone_s, "processes_left": len(left), "gpu_free_s": free_s}


def alive(process: psutil.Process) -> bool:
    """Whether it still runs (a zombie does not)."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
