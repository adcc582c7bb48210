"""Things that take time, for objects that must end them all before they go."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from app.errors import UserError
from engine.presets import PresetError

log = logging.getLogger(__name__)


class Tasks:
    """Runs coroutines; `complain` is given one sentence of each that fails."""

    def __init__(self, complain: Callable[[str], None]) -> None:
        self._complain = complain
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> asyncio.Task[None]:
        """Begin one."""
        task = asyncio.ensure_future(self._guarded(function))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def finish(self) -> None:
        """Wait for all of them."""
        while self._running:
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _guarded(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        try:
            await function()
        except (UserError, PresetError) as error:
            log.warning("%s", error)
            self._complain(str(error))
        except Exception as error:
            log.exception("A task failed.")
            self._complain(f"Something went wrong that should not ({type(error).__name__}); the log has the details.")
