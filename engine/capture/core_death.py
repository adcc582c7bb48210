"""The end of an engine core's process, told to the thread that waits for an answer of it.

vLLM notes that the process is gone and closes its sockets, but a thread that waits for a step or for a call to the
workers goes on waiting (read in 0.32.0: `SyncMPClient`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import InvalidStateError
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

logger = logging.getLogger("surtitle.capture")


class CoreDeathError(Exception):
    """What a call that waits raises when the engine core is gone."""


def watch(client: Any, ended: Callable[[], object]) -> None:
    """Have calls of vLLM's `client` fail when its engine core ends, and call `ended`. Where it is no process: nothing.

    A core that was told to end counts too.
    """
    if not hasattr(client, "resources"):
        return
    try:
        # Not the client itself, which ends its processes when nobody holds it any more.
        parts = client.resources, client.outputs_queue, client.utility_results
        sentinels = [process.sentinel for process in client.resources.engine_manager.processes]
    except AttributeError as error:
        logger.warning("The end of vLLM's engine core will not be noticed in this version of it: %s.", error)
        return
    threading.Thread(target=_watch, args=(sentinels, ended, *parts), name="core-death", daemon=True).start()


def is_dead(client: Any) -> bool:
    """Whether the engine core of a `client` is gone."""
    return bool(getattr(getattr(client, "resources", None), "engine_dead", False))


def _watch(
    sentinels: list[Any], ended: Callable[[], object], resources: Any, outputs: Any, calls: dict[int, Any]
) -> None:
    wait(sentinels)
    error = CoreDeathError("the engine core has ended")
    resources.engine_dead = True  # a call puts itself into the list before it looks at this: none slips through
    outputs.put(error)
    for call in list(calls.values()):
        with suppress(InvalidStateError):  # answered after all
            call.set_exception(error)
    ended()
