"""What may arrive next on one connection: sequence numbers, utterance ids, the clock and the times of words. Pure.

A frame that breaks the order is answered with an error and dropped; the session stays as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.asr.contract import Utterance, Word
from engine.server.protocol import BAD_PROTOCOL, PROCESSING_FAILED, ProtocolFault, Update, WireWord

# Neighbouring words of real recognisers overlap, and their last word may end behind the audio they were given.
OVERLAP_MS = 1000.0


class Reception:
    """Checks updates in the order of their arrival and makes utterances of them (times in seconds).

    The first update after `init` may have any utterance id (a client that reconnects goes on counting). From then on an
    update belongs to the open utterance or, once that is final, to the next one.
    """

    def __init__(self) -> None:
        self._seq = -1
        self._clock_ms = 0.0
        self._open: int | None = None
        self._closed = False

    def take(self, update: Update) -> Utterance | None:
        """The utterance to translate; None for a partial that its final has overtaken. Raises `ProtocolFault`."""
        if update.seq <= self._seq:
            raise ProtocolFault(BAD_PROTOCOL, f"seq must grow: {update.seq} came after {self._seq}.", seq=update.seq)
        self._seq = update.seq
        if self._is_stale(update):
            return None
        self._check_times(update)
        self._clock_ms = update.clock_ms
        self._closed = update.is_final or (self._closed and update.utterance_id == self._open)
        self._open = update.utterance_id
        tail = update.tail.words if update.tail and not update.is_final else []
        words = _words([*update.words, *tail])
        committed = len(update.words)
        return Utterance(update.utterance_id, words[:committed], words[committed:], update.is_final)

    def closed(self, utterance_id: int) -> None:
        """The server closed an utterance by itself: the next id may come."""
        self._closed = self._closed or utterance_id == self._open

    def _is_stale(self, update: Update) -> bool:
        """Whether the update is a partial that came too late. Raises `ProtocolFault` for an id out of order."""
        if self._open is None:
            return False
        if update.utterance_id == self._open:
            return self._closed and not update.is_final
        if update.utterance_id == self._open + 1 and self._closed:
            return False
        if update.utterance_id < self._open and not update.is_final:
            return True
        expected = f"{self._open + 1}" if self._closed else f"{self._open}, which has had no final"
        raise ProtocolFault(
            BAD_PROTOCOL, f"utterance_id {update.utterance_id} is out of order: expected {expected}.", seq=update.seq
        )

    def _check_times(self, update: Update) -> None:
        if update.clock_ms < self._clock_ms:
            raise _refused(update, f"clock_ms went back from {self._clock_ms:g} to {update.clock_ms:g}")
        newest, latest_end = 0.0, 0.0
        for text, start, end in update.words:
            if start is not None and end is not None and end < start:
                raise _refused(update, f"the word '{text}' ends before it starts")
            if start is not None and start < newest - OVERLAP_MS:
                raise _refused(update, f"the word '{text}' starts before the word in front of it")
            newest = max(newest, start or 0.0)
            latest_end = max(latest_end, end or 0.0)
        if latest_end > update.clock_ms + OVERLAP_MS:
            raise _refused(
                update, f"clock_ms {update.clock_ms:g} is behind a committed word that ends at {latest_end:g}"
            )


def _refused(update: Update, why: str) -> ProtocolFault:
    return ProtocolFault(PROCESSING_FAILED, f"The update was dropped: {why}.", seq=update.seq)


def _words(wire: Sequence[WireWord]) -> tuple[Word, ...]:
    """Words with times in seconds; an unknown time is that of the word in front."""
    words: list[Word] = []
    last_s = 0.0
    for text, start_ms, end_ms in wire:
        start_s = last_s if start_ms is None else start_ms / 1000
        end_s = start_s if end_ms is None else end_ms / 1000
        words.append(Word(text, start_s, end_s))
        last_s = end_s
    return tuple(words)
