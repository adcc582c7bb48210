"""What is on screen, without Qt: recent utterances as stable and held text. Views subscribe; they never poll.

This is also the receiving end of the promise that stable text never changes: a caption that breaks it is
logged, counted and dropped before any view or recorder sees it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass

from app.observe import Notifier
from engine.messages import Caption

log = logging.getLogger(__name__)

KEPT = 12  # utterances a window can look back on
CHECKED = 256  # utterances whose stable text is remembered for the check


@dataclass(frozen=True, slots=True)
class Run:
    """A piece of text in one manner of showing."""

    text: str
    held: bool


@dataclass(frozen=True, slots=True)
class Line:
    """One utterance as it stands. `key` is unique over all sessions of this model and rises."""

    key: tuple[int, int]
    stable: str
    held: str
    source_stable: str
    source_tail: str
    final: bool

    @property
    def runs(self) -> tuple[Run, ...]:
        """Stable, then held; nothing empty. Joined, they are the text on screen."""
        pieces = (Run(self.stable, False), Run(self.held, True))
        return tuple(run for run in pieces if run.text)

    @property
    def source_runs(self) -> tuple[Run, ...]:
        """The recogniser's words: committed, then the tail that may still change."""
        gap = " " if self.source_stable and self.source_tail and not self.source_tail[0].isspace() else ""
        pieces = (Run(self.source_stable, False), Run(gap + self.source_tail, True))
        return tuple(run for run in pieces if run.text)


class AppendOnly:
    """Remembers the stable text of each utterance of a session and judges the next caption."""

    def __init__(self) -> None:
        self._seen: OrderedDict[int, tuple[str, bool]] = OrderedDict()
        self._forgotten = -1

    def fault(self, caption: Caption) -> str | None:
        """What is wrong with this caption, or None; then it is remembered."""
        uid = caption.utterance_id
        if uid <= self._forgotten:
            return f"Utterance {uid} was closed long ago."
        stable, final = self._seen.get(uid, ("", False))
        if not caption.stable.startswith(stable):
            return f"Utterance {uid}: stable text {stable!r} was changed to {caption.stable!r}."
        if final and (caption.stable != stable or not caption.final):
            return f"Utterance {uid} went on after it was final: {stable!r}, then {caption.stable!r}."
        self._seen[uid] = (caption.stable, caption.final)
        if len(self._seen) > CHECKED:
            oldest, _ = self._seen.popitem(last=False)
            self._forgotten = max(self._forgotten, oldest)
        return None


class Subtitles:
    """The text in the window. `changed` carries the line that changed, or None when lines went away.

    `violations` counts captions that would have changed stable text.
    """

    def __init__(self) -> None:
        self.changed: Notifier[Line | None] = Notifier()
        self.violations = 0
        self._guard = AppendOnly()
        self._session = 0
        self._lines: OrderedDict[tuple[int, int], Line] = OrderedDict()

    @property
    def lines(self) -> tuple[Line, ...]:
        """The recent utterances that have text or source, oldest first."""
        return tuple(self._lines.values())

    def begin(self) -> None:
        """A new session: utterances are counted anew; what was stable stays on screen."""
        self._session += 1
        self._guard = AppendOnly()
        self.drop_held()

    def drop_held(self) -> None:
        """Nothing will come of what is still held (the engine died, the session ended)."""
        for key, line in tuple(self._lines.items()):
            if line.stable:
                self._lines[key] = Line(key, line.stable, "", line.source_stable, "", True)
            else:
                del self._lines[key]
        self.changed.emit(None)

    def apply(self, caption: Caption) -> bool:
        """Take a caption. False when it breaks the promise: then it must go nowhere else either."""
        if fault := self._guard.fault(caption):
            self.violations += 1
            log.error("A caption was dropped. %s", fault)
            return False
        key = (self._session, caption.utterance_id)
        held = "" if caption.final else caption.held
        tail = "" if caption.final else caption.source_tail
        line = Line(key, caption.stable, held, caption.source_stable, tail, caption.final)
        if line == self._lines.get(key):
            return True
        if not (line.runs or line.source_runs):
            self._lines.pop(key, None)
            self.changed.emit(None)
            return True
        if key not in self._lines and self._lines and key < next(reversed(self._lines)):
            self._insert(line)
        else:
            self._lines[key] = line
        while len(self._lines) > KEPT:
            self._lines.popitem(last=False)
        self.changed.emit(line)
        return True

    def _insert(self, line: Line) -> None:
        """An older utterance that had nothing to show before."""
        self._lines[line.key] = line
        self._lines = OrderedDict(sorted(self._lines.items()))
