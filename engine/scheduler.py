"""Which update is translated next: a mailbox of one for partials, an ordered queue for finals.

The newest partial replaces an older one that has not started; a final supersedes the partials of its utterance and of
every earlier one; finals are never dropped and leave in order. Used by the session and by the MT server.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

from engine.asr.contract import Utterance


@dataclass(frozen=True, slots=True)
class Update:
    """The full state of an utterance, `clock_s` being the audio time up to which it is known.

    `tag` is handed through untouched (the MT server keeps the client's `seq` in it); `queued_at` is
    `time.monotonic()` when it was put.
    """

    utterance: Utterance
    clock_s: float
    queued_at: float
    tag: int = 0


class Mailbox:
    """Thread-safe. One or several threads put, one takes."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._finals: deque[Update] = deque()
        self._partial: Update | None = None
        self._working = False
        self._closed_through = -1
        self._closed = False
        self.superseded = 0

    def put(self, update: Update) -> None:
        """Queue an update. A partial of an utterance that was already closed is dropped and counted."""
        utterance_id = update.utterance.utterance_id
        with self._condition:
            if update.utterance.final:
                self._closed_through = max(self._closed_through, utterance_id)
                self._finals.append(update)
                if self._partial and self._partial.utterance.utterance_id <= utterance_id:
                    self._partial = None
                    self.superseded += 1
            elif utterance_id <= self._closed_through:
                self.superseded += 1
            else:
                self.superseded += self._partial is not None
                self._partial = update
            self._condition.notify_all()

    def take(self, timeout_s: float | None = None) -> Update | None:
        """The next update: finals in order, then the newest partial. None when closed and empty, or on time-out.

        Taking says that the update taken before is done with.
        """
        with self._condition:
            self._working = False
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._finals or self._partial or self._closed, timeout_s)
            if self._finals:
                update: Update | None = self._finals.popleft()
            else:
                update, self._partial = self._partial, None
            self._working = update is not None
            return update

    def wait_idle(self) -> None:
        """Wait until everything put so far has been taken and is done with (or the mailbox is closed)."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._is_idle())

    @property
    def idle(self) -> bool:
        """Whether everything put so far has been taken and is done with."""
        with self._condition:
            return self._is_idle()

    def _is_idle(self) -> bool:
        return not (self._finals or self._partial or self._working)

    def peek(self) -> Update | None:
        """What `take` would give now, left in place."""
        with self._condition:
            return self._finals[0] if self._finals else self._partial

    @property
    def finals(self) -> int:
        """How many finals wait."""
        with self._condition:
            return len(self._finals)

    def makes_way(self, utterance: Utterance) -> bool:
        """Whether the draft of a partial should make way for a final that waits.

        A final of the same words does not chase it away: it can use that very draft.
        """
        with self._condition:
            return bool(self._finals) and not _same_words(self._finals[0].utterance, utterance)

    def close(self) -> None:
        """No more updates will come; `take` answers None once what is queued has left."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    @property
    def drained(self) -> bool:
        with self._condition:
            return self._closed and not self._finals and self._partial is None


def _same_words(first: Utterance, second: Utterance) -> bool:
    """Same utterance, same words, wherever the frontier stands."""
    words = [[word.text for word in (*side.committed, *side.tail)] for side in (first, second)]
    return first.utterance_id == second.utterance_id and words[0] == words[1]
