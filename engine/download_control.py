"""The hand on a running download: commands reach it on one thread, the download asks for them on another."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from engine.messages import DownloadProgress

logger = logging.getLogger("surtitle.engine")

_WISHES = {"pause": "paused", "resume": "running", "cancel": "cancelled"}


class Cancelled(Exception):
    """The person does not want these weights: what has arrived is removed."""


class Left(Exception):
    """The engine goes away: what has arrived is kept for the next time."""


class DownloadControl:
    """Pause, resume and cancel of one download after the other. `emit` is told how far the running one is."""

    def __init__(self, emit: Callable[[DownloadProgress], None] = lambda event: None) -> None:
        self.emit = emit
        self._condition = threading.Condition()
        self._active = False
        self._wish = "running"

    def act(self, action: str) -> bool:
        """Carry out "pause", "resume" or "cancel"; False when no download is running. Any thread may call this."""
        with self._condition:
            if not self._active:
                return False
            if action not in _WISHES:
                logger.error("A download cannot be told to %r.", action)
            elif self._wish in ("running", "paused"):
                self._wish = _WISHES[action]
                self._condition.notify_all()
            return True

    def leave(self) -> None:
        """End the running download, and every later one at once; parts are kept. Any thread may call this."""
        with self._condition:
            self._wish = "left"
            self._condition.notify_all()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around a download: only there commands count."""
        with self._condition:
            self._active = True
            if self._wish != "left":
                self._wish = "running"
        try:
            yield
        finally:
            with self._condition:
                self._active = False

    @property
    def paused(self) -> bool:
        """Whether the download should let go of its connection and call `go_on`. Raises `Cancelled` or `Left`."""
        with self._condition:
            self._raise()
            return self._wish == "paused"

    def go_on(self) -> None:
        """Wait while paused. Raises `Cancelled` or `Left`."""
        with self._condition:
            self._condition.wait_for(lambda: self._wish != "paused")
            self._raise()

    def sleep(self, seconds: float) -> None:
        """A break between two attempts, which any command ends. Raises `Cancelled` or `Left`."""
        with self._condition:
            self._condition.wait_for(lambda: self._wish != "running", seconds)
            self._raise()

    def _raise(self) -> None:
        if self._wish == "cancelled":
            raise Cancelled
        if self._wish == "left":
            raise Left


_control: ContextVar[DownloadControl | None] = ContextVar("download control", default=None)


def current_control() -> DownloadControl:
    """The control of the loading that this thread is in; one that nobody holds where there is none."""
    return _control.get() or DownloadControl()


@contextmanager
def controlled_by(control: DownloadControl) -> Iterator[None]:
    """Weights that this thread resolves inside are downloaded under this control."""
    token = _control.set(control)
    try:
        yield
    finally:
        _control.reset(token)
