"""First code in the engine's process.

It names the engine by string, so that the app itself never imports it.
"""

from __future__ import annotations

import importlib
import signal
from multiprocessing.queues import Queue
from typing import Any

from engine.messages import Error, Numberer


def run_child(module: str, function: str, commands: Queue[Any], events: Queue[Any], parent_pid: int) -> None:
    """Call `module.function(commands, events, parent_pid)`, which makes its own process group.

    An engine that cannot be imported says so as a fatal error before it ends with exit code 1.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the app's: it stops the session, then the engine
    if hasattr(signal, "pthread_sigmask"):  # held back by the app until here, since Python would have raised it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    try:
        engine = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        sentence = f"The engine cannot be loaded: {error}; run `make` again or reinstall surtitle[laptop]."
        events.put(Numberer().wrap(Error("engine_import", sentence, fatal=True)))
        events.close()
        events.join_thread()
        raise SystemExit(1) from error
    engine(commands, events, parent_pid)
