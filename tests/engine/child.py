"""The engine as a child process, for tests: started as the app starts it, asked and heard over its own queues."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.queues import Queue
from typing import Any, TypeVar

import psutil

from app.engine_launcher import run_child
from engine import host, process
from engine.messages import Command, Error, Event, Numberer, Probe, Receiver, Shutdown

LIMIT_S = 60.0  # for a machine under load, not a measure
E = TypeVar("E", bound=Event)


class Engine:
    """One engine process. `module` names another entry point than the engine's own."""

    def __init__(self, module: str = "engine.process", function: str = "run_engine") -> None:
        context = multiprocessing.get_context("spawn")
        self.commands, self.events = context.Queue(), context.Queue()
        self.heard: list[Event] = []
        self._numberer, self._receiver = Numberer(), Receiver(Event)
        self.process = context.Process(
            target=run_child, args=(module, function, self.commands, self.events, os.getpid())
        )
        self.process.start()
        assert self.process.pid is not None
        self.pid: int = self.process.pid

    def send(self, command: Command) -> None:
        self.commands.put(self._numberer.wrap(command))

    def skip(self) -> None:
        """Lose a message on the way."""
        self._numberer.wrap(Probe())

    def next(self, kind: type[E]) -> E:
        """The next event of a kind; those before it are kept in `heard`."""
        while True:
            event = self._receiver.unwrap(self.events.get(timeout=LIMIT_S))
            assert isinstance(event, Event)
            self.heard.append(event)
            if isinstance(event, kind):
                return event

    def leave(self) -> int | None:
        """Ask it to go and give its exit code."""
        self.send(Shutdown())
        self.process.join(LIMIT_S)
        return self.process.exitcode

    def close(self) -> None:
        """Leave nothing behind, whatever happened in the test."""
        if self.process.is_alive():
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.process.kill()
        self.process.join(LIMIT_S)
        for one in (self.commands, self.events):
            one.cancel_join_thread()
            one.close()
        self.process.close()


class _HostWithGrandchild(host.Host):
    """A host that starts a process of its own when it is probed, and says its number."""

    def handle(self, command: Command) -> None:
        if isinstance(command, Probe):
            grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            self._emit(Error("grandchild", str(grandchild.pid)))
        else:
            super().handle(command)


def run_with_grandchild(commands: Queue[Any], events: Queue[Any], parent_pid: int) -> None:
    """`run_engine` around a host that starts a process of its own."""
    process.run_engine(commands, events, parent_pid, _HostWithGrandchild)


def gone(pid: int) -> bool:
    """No process of this number runs (a zombie does not)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Poll until it is true."""
    end_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end_s, f"it did not come true that {what}"
        time.sleep(0.02)


def parent() -> None:
    """A program that starts an engine with a grandchild, says both numbers, and waits to be killed."""
    engine = Engine("tests.engine.child", "run_with_grandchild")
    engine.send(Probe())
    print(engine.pid, engine.next(Error).message, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    parent()
