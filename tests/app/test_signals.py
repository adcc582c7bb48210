"""Signals on loops that take handlers, and on those that do not (Windows)."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from app.signals import on_signals


def refuse(*_: object) -> None:
    raise NotImplementedError


@pytest.mark.parametrize("taken", [True, False], ids=["handlers", "no handlers"])
def test_a_signal_reaches_the_loop_and_the_old_handler_comes_back(taken: bool) -> None:
    async def run() -> int:
        loop, heard = asyncio.get_running_loop(), asyncio.Event()
        if not taken:
            loop.add_signal_handler = refuse  # type: ignore[method-assign, assignment]
        with on_signals(heard.set):
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.wait_for(heard.wait(), 10)
        return os.getpid()

    before = signal.getsignal(signal.SIGTERM)
    assert asyncio.run(run())
    assert signal.getsignal(signal.SIGTERM) == before
