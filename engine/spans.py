"""Where time goes in a session: spans of work by stage, told to whoever measures. Without a listener nothing is noted.

Stages: `voice_activity`; `recogniser`, one decode of the window, with `alignment` inside it; `translation`, from an
update that was taken to its decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """One piece of work. Times are `time.monotonic()`; `ended_s` is None in what is told at its beginning.

    `at_s`: end of the audio that it is about, on the session clock, None where it is about none.
    """

    stage: str
    began_s: float
    ended_s: float | None
    at_s: float | None = None


Listener = Callable[[Span], None]
_listener: Listener | None = None


def listen(listener: Listener | None) -> None:
    """From now on, tell the beginning and the end of every span of this process, on the thread that does the work.

    A listener must not raise.
    """
    global _listener
    _listener = listener


@contextmanager
def span(stage: str, at_s: float | None = None) -> Iterator[None]:
    """What is done inside belongs to a stage."""
    tell = _listener
    if tell is None:
        yield
        return
    began_s = time.monotonic()
    tell(Span(stage, began_s, None, at_s))
    try:
        yield
    finally:
        tell(Span(stage, began_s, time.monotonic(), at_s))
