"""Local agreement: what two successive hypotheses say alike is committed, the rest is tail. Pure.

LocalAgreement-2 (Liu et al. 2020, "Low-latency sequence-to-sequence speech recognition and translation by partial
hypothesis selection"), on words. Words are compared by letters and digits only, so that a comma that comes and goes
does not hold a word back; the text that is committed is the newer hypothesis' own.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from engine.asr.contract import Word

# What a second of distance between two ends weighs against one differing word when a hypothesis is laid beside
# what is committed.
_SECONDS_PER_EDIT = 1.0


def normalise(text: str) -> str:
    """The word as it is compared: case folded, compatibility forms unified, letters and digits only.

    A word without any letter or digit compares by its own characters.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if c.isalnum() or unicodedata.category(c).startswith("M")) or folded.strip()


def common_prefix(first: Sequence[Word], second: Sequence[Word]) -> int:
    """How many words from the beginning two hypotheses share."""
    count = 0
    for a, b in zip(first, second, strict=False):
        if normalise(a.text) != normalise(b.text):
            break
        count += 1
    return count


def overlap(committed: Sequence[Word], hypothesis: Sequence[Word]) -> int:
    """How many words at the beginning of a hypothesis repeat the committed ones.

    The model hears the committed words again and may spell, split or miss them differently, so neither a count nor a
    time alone says where the new words begin. The cut is the prefix with the least edit distance to the committed
    words plus the distance in time between both ends.
    """
    if not committed or not hypothesis:
        return 0
    old = [normalise(word.text) for word in committed]
    new = [normalise(word.text) for word in hypothesis]
    previous = list(range(len(new) + 1))
    for i, a in enumerate(old, start=1):
        row = [i]
        for j, b in enumerate(new, start=1):
            row.append(min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (a != b)))
        previous = row
    end_s = committed[-1].end_s
    ends = [committed[0].start_s, *(word.end_s for word in hypothesis)]
    costs = [edits + abs(at - end_s) / _SECONDS_PER_EDIT for edits, at in zip(previous, ends, strict=True)]
    return costs.index(min(costs))


class LocalAgreement:
    """The committed words of the open utterance and the tail behind them."""

    def __init__(self, hold_back_s: float) -> None:
        self._hold_back_s = hold_back_s
        self.committed: list[Word] = []
        self.tail: list[Word] = []
        # The newest spelling of the last committed word: a full stop may be heard only after the word was committed.
        self.last_heard: str | None = None
        self._floor_s = 0.0

    @property
    def words(self) -> list[Word]:
        """Committed words and tail."""
        return self.committed + self.tail

    def insert(self, hypothesis: Sequence[Word], clock_s: float) -> int:
        """Take a hypothesis for the whole window; returns how many words were committed by it.

        A word is committed when the previous hypothesis had it at the same place and it ends at least the hold-back
        before `clock_s`, the end of the audio heard.
        """
        done = overlap(self.committed, hypothesis)
        self.last_heard = hypothesis[done - 1].text if done else None
        fresh = hypothesis[done:]
        agreed = common_prefix(self.tail, fresh)
        limit_s = clock_s - self._hold_back_s
        count = 0
        while count < agreed and fresh[count].end_s <= limit_s:
            count += 1
        self.tail = self._in_order(fresh, clock_s)
        self.commit(count)
        return count

    def commit(self, count: int) -> None:
        """Commit the first `count` words of the tail as they are."""
        if count > 0:
            self.committed += self.tail[:count]
            self.tail = self.tail[count:]
            self._floor_s = self.committed[-1].end_s
            self.last_heard = self.committed[-1].text

    def take(self, count: int) -> tuple[Word, ...]:
        """Remove the first `count` committed words (their utterance is closed) and return them."""
        taken, self.committed = tuple(self.committed[:count]), self.committed[count:]
        if not self.committed:
            self.last_heard = None
        return taken

    def _in_order(self, words: Sequence[Word], clock_s: float) -> list[Word]:
        """The words with times that never fall and lie between what is committed and the clock."""
        at, ordered = self._floor_s, []
        for word in words:
            start = min(max(word.start_s, at), clock_s)
            at = min(max(word.end_s, start), clock_s)
            ordered.append(replace(word, start_s=start, end_s=at))
        return ordered
