"""Blocking calls off the loop's thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(function: Callable[[], T], limit_s: float) -> T:
    """Result of `function()` run on a daemon thread. Raises its exception, or TimeoutError after `limit_s`.

    An executor's threads are joined at exit; a call into a sound system that hangs must not keep the program.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def work() -> None:
        result, problem = None, None
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - handed to the caller, whatever it is
            problem = error
        with contextlib.suppress(RuntimeError):  # the loop was closed
            loop.call_soon_threadsafe(settle, result, problem)

    threading.Thread(target=work, name=getattr(function, "__name__", "call"), daemon=True).start()
    return await asyncio.wait_for(future, limit_s)
