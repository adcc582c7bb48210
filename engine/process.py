"""The engine process: reads commands, hosts one session at a time, sends events.

It leads a process group of its own and ends that whole group when its parent dies, so that no grandchild outlives the
app. Ctrl-C belongs to the app: SIGINT is ignored here.
"""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from multiprocessing import parent_process
from multiprocessing.connection import wait
from multiprocessing.queues import Queue
from queue import SimpleQueue
from typing import Any

from engine.host import Host
from engine.logs import log_to_file
from engine.messages import Command, Download, Error, Event, MessagesLost, Numberer, ProtocolError, Receiver, Shutdown

logger = logging.getLogger("surtitle.engine")

# Python code between two tokens (the attention callback) waits for the interpreter; a busy other thread gives it up
# after this long. The default of 5 ms makes a token several times slower.
SWITCH_INTERVAL_S = 1e-4


def run_engine(
    commands: Queue[Any],
    events: Queue[Any],
    parent_pid: int,
    make_host: Callable[[Callable[[Event], None]], Host] = Host,
) -> None:
    """Entry point of the child. Returns after `Shutdown`, or when the parent is gone."""
    _own_group(parent_pid)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    log_to_file("engine")
    faulthandler.enable()
    numberer, lock = Numberer(), threading.Lock()

    def emit(event: Event) -> None:
        with lock:
            events.put(numberer.wrap(event))

    host = make_host(emit)
    inbox: SimpleQueue[Command | BaseException] = SimpleQueue()
    threading.Thread(target=_read, args=(commands, inbox, host, emit), name="command reader", daemon=True).start()
    logger.info("engine %d started", os.getpid())
    while not isinstance(command := inbox.get(), Shutdown):
        if isinstance(command, BaseException):
            raise command
        host.handle(command)
    host.close()
    events.close()
    events.join_thread()
    logger.info("engine %d left", os.getpid())


def _read(
    commands: Queue[Any],
    inbox: SimpleQueue[Command | BaseException],
    host: Host,
    emit: Callable[[Event], None],
) -> None:
    """Hand on commands in their order until `Shutdown`; those for a download do not wait for the loading around it."""
    receiver = Receiver(Command)
    while True:
        try:
            command = receiver.unwrap(commands.get())
        except MessagesLost as error:
            emit(Error("protocol", str(error)))
            if not isinstance(error.body, Command):
                continue
            command = error.body
        except ProtocolError as error:
            logger.error("%s", error)
            emit(Error("protocol", str(error)))
            continue
        except Exception as error:  # noqa: BLE001  the main thread ends the process with it
            inbox.put(error)
            return
        if isinstance(command, Download):
            host.control(command)
            continue
        if isinstance(command, Shutdown):
            host.leave()
        inbox.put(command)
        if isinstance(command, Shutdown):
            return


def _own_group(parent_pid: int) -> None:
    """Lead an own process group that dies with the parent."""
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signals = None
    if sys.platform == "linux":
        signals = _signals()
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
    if os.getppid() != parent_pid:
        end_group()
    threading.Thread(target=_watch, args=(signals,), name="death watch", daemon=True).start()


def _signals() -> int:
    """A pipe that carries the number of each signal that arrives; SIGTERM among them ends the group.

    The handler itself runs on the main thread between two instructions of Python: never, while that thread loads a
    model or when the signal came just before it began to wait for a command.
    """
    signal.signal(signal.SIGTERM, lambda *_: end_group())
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    return reader


def _watch(signals: int | None) -> None:
    """Wait for the parent's death or SIGTERM."""
    parent = parent_process()
    handles = [] if parent is None else [parent.sentinel]
    handles += [] if signals is None else [signals]
    while handles:
        ready = wait(handles)
        if signals not in ready or signal.SIGTERM in os.read(signals, 64):
            end_group()


def end_group() -> None:
    """Kill the engine and everything it started."""
    if hasattr(os, "killpg"):
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)
