"""How models tell their views: a list of listeners, called in their order, on the caller's thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class Notifier(Generic[T]):
    """Passes each value to every listener."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[T], None]] = []

    def subscribe(self, listener: Callable[[T], None]) -> Callable[[], None]:
        """Call `listener` for each value from now on; the result ends that."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return unsubscribe

    def emit(self, value: T) -> None:
        """Tell everybody. A listener that fails is logged and does not keep the others from hearing."""
        for listener in tuple(self._listeners):
            try:
                listener(value)
            except Exception:
                log.exception("A listener failed on %s.", type(value).__name__)
