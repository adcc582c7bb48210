"""Who may draft next: a fixed number of slots, given out in the order of asking. For one event loop."""

from __future__ import annotations

import asyncio
from collections import deque


class Slots:
    """`ask` gives a future that is done once the slot is granted; every granted slot comes back with `release`."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def ask(self) -> asyncio.Future[None]:
        """A place in the queue."""
        ticket: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(ticket)
        self._grant()
        return ticket

    def withdraw(self, ticket: asyncio.Future[None]) -> None:
        """Give a ticket back that is not wanted any more, granted or not."""
        if ticket in self._waiting:
            self._waiting.remove(ticket)
        else:
            self.release()

    def release(self) -> None:
        """A granted slot is free again."""
        self._free += 1
        self._grant()

    def _grant(self) -> None:
        while self._free and self._waiting:
            self._free -= 1
            self._waiting.popleft().set_result(None)
