"""Ctrl-C and a polite end, on every platform's event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def interrupt_ends() -> Iterator[None]:
    """Ctrl-C ends the process at once, until `on_signals` takes it over.

    For the start of a window: Qt's modules abort or go on as if nothing had been when Python raises an exception in
    the middle of them, and nothing is lost before a session begins.
    """
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def signals_held() -> Iterator[None]:
    """Ctrl-C waits until the context is left, also in a process that is begun in it: see `run_child`."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def on_signals(handler: Callable[[], None]) -> Iterator[None]:
    """Call `handler` on the running loop's thread for SIGINT and SIGTERM, as long as the context lasts.

    Loops on Windows take no signal handlers: there Python's own handler passes the call on to the loop.
    """
    loop = asyncio.get_running_loop()
    before = {}
    try:
        for number in NUMBERS:
            try:
                loop.add_signal_handler(number, handler)
            except NotImplementedError:
                before[number] = signal.signal(number, lambda *_: loop.call_soon_threadsafe(handler))
        yield
    finally:
        for number in NUMBERS:
            if number in before:
                signal.signal(number, before[number])
            else:
                loop.remove_signal_handler(number)
