"""Key/value caches of transformers, one for each session, re-used as far as a new prompt begins like an old one.

The caches keep every position in sliding-window layers too (the mask hides what lies beyond the window): only so can a
cache go back to any earlier position, and column = position holds in all layers.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from transformers import DynamicCache


@dataclass(slots=True)
class CachedText:
    """A cache and the token ids whose keys and values it holds, position = index."""

    cache: DynamicCache = field(default_factory=DynamicCache)
    ids: list[int] = field(default_factory=list)

    def crop(self, length: int) -> None:
        """Drop everything from position `length` on."""
        if length < len(self.ids):
            self.cache.crop(length - len(self.ids))
            del self.ids[length:]

    def fork(self, length: int) -> CachedText:
        """A copy of the first `length` positions."""
        copy = CachedText(ids=self.ids[:length])
        for index, layer in enumerate(self.cache.layers):
            if layer.is_initialized:
                copy.cache.update(layer.keys[..., :length, :], layer.values[..., :length, :], index)
        return copy


class SessionCaches:
    """At most `limit` cached texts; the one not used for longest goes first."""

    def __init__(self, limit: int = 8) -> None:
        self._limit = limit
        self._texts: OrderedDict[str, CachedText] = OrderedDict()

    def take(self, session_id: str, ids: Sequence[int], decode: int = 1) -> CachedText:
        """The session's cache, cut to what it shares with `ids`; the last `decode` ids are always left to decode.

        A prompt that begins more like another session's text starts from a copy of that.
        """
        most = max(len(ids) - decode, 0)
        own = self._texts.pop(session_id, None) or CachedText()
        shared = _shared(own.ids, ids, most)
        for other in self._texts.values():
            if (longer := _shared(other.ids, ids, most)) > shared:
                own, shared = other.fork(longer), longer
        own.crop(shared)
        self._texts[session_id] = own
        while len(self._texts) > self._limit:
            self._texts.popitem(last=False)
        return own

    def drop(self, session_id: str) -> None:
        """Forget a session."""
        self._texts.pop(session_id, None)

    def clear(self) -> None:
        """Forget everything."""
        self._texts.clear()


def cache_keyword(model: Any) -> str:
    """What a model calls its cache: transformers 5.24 has renamed it, environments of vLLM carry earlier ones."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _shared(a: Sequence[int], b: Sequence[int], most: int) -> int:
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right or count == most:
            break
        count += 1
    return count
