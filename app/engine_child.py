"""One engine process with its own pair of queues. It is started once, watched, ended, and never used again.

A queue whose peer was killed cannot be trusted (a `get` may hang on half a message, a lock may stay taken):
so the queues die with the process, the reading thread may be left behind, and only the process itself says
whether it lives.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any

from app.engine_launcher import run_child
from app.signals import signals_held
from engine.messages import Command, Numberer

log = logging.getLogger(__name__)

MAX_WAITING = 4096  # commands; some minutes of audio that an engine which hangs does not take
KILLED = 9  # SIGKILL, which Windows does not name
POLL_S = 0.2
DRAIN_S = 0.5  # for what the engine said just before it died


@dataclass(frozen=True, slots=True)
class Target:
    """The function that the engine process runs, by name: `function(commands, events, parent_pid)`."""

    module: str = "engine.process"
    function: str = "run_engine"


class EngineChild:
    """Starts the process.

    `on_item(item)` and `on_exit(code)` are called on threads; exit comes last, once.
    """

    def __init__(self, target: Target, on_item: Callable[[Any], None], on_exit: Callable[[int], None]) -> None:
        """Raises OSError when the process cannot be started."""
        context = multiprocessing.get_context("spawn")
        self._commands = context.Queue(MAX_WAITING)
        self._events = context.Queue()
        self._commands.cancel_join_thread()
        self._events.cancel_join_thread()
        self._numberer = Numberer()
        self._sending = threading.Lock()
        self._gone = threading.Event()
        self._on_item, self._on_exit = on_item, on_exit
        # Not a daemon: an engine has processes of its own, which multiprocessing forbids to daemons.
        self._process = context.Process(
            target=run_child,
            args=(target.module, target.function, self._commands, self._events, os.getpid()),
            name="surtitle engine",
            daemon=False,
        )
        with signals_held():
            self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid
        atexit.register(self.kill)
        self._reader = threading.Thread(target=self._read, name="engine events", daemon=True)
        self._reader.start()
        threading.Thread(target=self._watch, name="engine watch", daemon=True).start()

    @property
    def alive(self) -> bool:
        return not self._gone.is_set()

    def send(self, command: Command) -> bool:
        """Queue a command.

        False when the engine is gone, or takes nothing while `MAX_WAITING` commands wait.
        """
        if self._gone.is_set():
            return False
        with self._sending:
            # asked first: a number given to a message that stays here is a hole
            if self._gone.is_set() or self._commands.full():
                return False
            self._commands.put_nowait(self._numberer.wrap(command))
        return True

    def terminate(self) -> None:
        """Ask the process to end."""
        if not self._gone.is_set():
            self._process.terminate()

    def kill(self) -> None:
        """End the process and its whole group, now."""
        if not self._gone.is_set():
            self._kill_group()
            self._process.kill()

    def _kill_group(self) -> None:
        """The group has the leader's number.

        Until the child has made it there is none, and nothing happens.
        """
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # nobody in it
                os.killpg(self.pid, signal.SIGKILL)

    def _read(self) -> None:
        while True:
            try:
                item = self._events.get(timeout=POLL_S)
            except queue.Empty:
                if self._gone.is_set():
                    return
            except (OSError, EOFError):
                return
            except Exception:
                log.exception("A message from the engine could not be read.")
            else:
                self._on_item(item)

    def _watch(self) -> None:
        handles = [self._process.sentinel]
        # The sentinel is a pipe that a forked grandchild may hold open; the pidfd is of the process alone.
        pidfd = _open_pidfd(self.pid)
        if pidfd is not None:
            handles.append(pidfd)
        wait(handles)
        self._kill_group()  # before the leader is reaped, so that its number still is its own
        self._process.join()
        self._gone.set()
        with self._sending:
            self._commands.close()  # ends the thread that feeds it; nobody reads any more
        if pidfd is not None:
            os.close(pidfd)
        atexit.unregister(self.kill)
        self._reader.join(DRAIN_S)
        code = self._process.exitcode
        self._on_exit(-KILLED if code is None else code)


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):  # not Linux, or an old kernel
        return None


def exit_sentence(code: int) -> str:
    """What the end of the engine means, in one sentence. Negative codes are signals."""
    if code == 0:
        return "The engine ended without being asked to; restart it to go on."
    if code > 0:
        return f"The engine ended with exit code {code}; restart it to go on."
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    if name == "SIGKILL":
        return "The engine was killed (SIGKILL), perhaps because memory ran out; restart it to go on."
    if name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE"):
        return f"The engine crashed ({name}); restart it to go on."
    return f"The engine was ended by {name}; restart it to go on."
