"""What is not well but does not stop the session, by who says it: states that last, and moments that pass.

On an asyncio loop, for the sentences of a moment end by themselves: see `moment`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

MOMENT_S = 8.0  # a sentence stays to be read for so long, also when what it tells of is over

HEALTH, ENGINE = "health", "engine"
_ORDER = ("source", HEALTH, ENGINE, "record", "settings", "dialogs")


class Notices:
    """`changed` is called whenever `sentences` may be different."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._said: dict[str, str] = {}
        self._health: dict[str, str] = {}
        self._told_s: dict[str, float] = {}
        self._ending: dict[str, asyncio.TimerHandle] = {}

    @property
    def sentences(self) -> tuple[str, ...]:
        """Everything that is to be seen now, in a fixed order."""
        rows = (self._health.values() if origin == HEALTH else [self.of(origin)] for origin in _ORDER)
        return tuple(dict.fromkeys(sentence for row in rows for sentence in row if sentence))

    def of(self, origin: str) -> str:
        """What `origin` has to say now, or ""."""
        return self._said.get(origin, "")

    def say(self, origin: str, sentence: str) -> None:
        """What `origin` has to say from now on; "" takes it back."""
        self._keep(origin)
        self._said[origin] = sentence
        self._changed()

    def health(self, component: str, sentence: str) -> None:
        """A state of the engine that lasts until the component is well again (""), or the next session begins."""
        self._health[component] = sentence
        self._changed()

    def moment(self, origin: str, sentence: str, *, over: bool) -> None:
        """Something that went wrong once. It is seen for `MOMENT_S`, and longer until it is `over` (see `passed`)."""
        self._told_s[origin] = asyncio.get_running_loop().time()
        self.say(origin, sentence)
        if over:
            self.passed(origin)

    def passed(self, origin: str) -> None:
        """What went wrong for a moment works again."""
        if self.of(origin) and origin not in self._ending:
            loop = asyncio.get_running_loop()
            self._ending[origin] = loop.call_at(self._told_s[origin] + MOMENT_S, lambda: self.say(origin, ""))

    def begin(self) -> None:
        """A new session, or none any more: what the engine said of the one before is forgotten."""
        self._health.clear()
        self.say(ENGINE, "")

    def clear(self) -> None:
        """Forget everything."""
        for origin in tuple(self._said):
            self.say(origin, "")
        self.begin()

    def _keep(self, origin: str) -> None:
        """What was to end one sentence does not end the next."""
        if (ending := self._ending.pop(origin, None)) is not None:
            ending.cancel()
