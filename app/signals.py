"""Ctrl-C and a polite end, on every platform's event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM)


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
