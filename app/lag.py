"""Why the subtitles are behind, and whether it gets worse: a pure judgement over the last half minute.

The window turns it into words and a suggestion.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import fmean

from app.status import BEHIND_S

KEPT_S = 120.0  # what the curve shows
RECENT_S = 10.0
BEFORE_S = 20.0  # recent lag is compared with that of so many seconds before
GROWTH_S = 1.0  # more than this is growing
SLOW_DRAFT_MS = 1500.0  # a draft that takes so long is what the words wait for


class Cause(Enum):
    """What the words wait for. RECOGNISER: sound waits to be recognised. TRANSLATOR: one translation takes long.
    GRAMMAR: nothing is slow; the translation waits for words that have not been said yet.
    """

    NONE = "none"
    RECOGNISER = "recogniser"
    TRANSLATOR = "translator"
    GRAMMAR = "grammar"


@dataclass(frozen=True, slots=True)
class Judgement:
    """`lag_s` now; `growing`: clearly more than before; `backlog_s` of sound; `draft_ms` of the newest translations."""

    lag_s: float = 0.0
    growing: bool = False
    cause: Cause = Cause.NONE
    backlog_s: float = 0.0
    draft_ms: float = 0.0


class LagWatch:
    """Fed with what the engine reports; times are seconds of any one clock that rises."""

    def __init__(self) -> None:
        self._lags: deque[tuple[float, float]] = deque()
        self._drafts: deque[float] = deque(maxlen=8)
        self._backlog_s = 0.0

    def reset(self) -> None:
        """A new session."""
        self._lags.clear()
        self._drafts.clear()
        self._backlog_s = 0.0

    def heard(self, at_s: float, lag_s: float, backlog_s: float) -> None:
        """A heartbeat: lag, and sound that was received and not yet recognised."""
        self._lags.append((at_s, lag_s))
        self._backlog_s = max(0.0, backlog_s)
        while self._lags[0][0] < at_s - KEPT_S:
            self._lags.popleft()

    def translated(self, stages: Mapping[str, float]) -> None:
        """A caption: its stages in milliseconds. One released without a draft says nothing."""
        if (draft_ms := stages.get("mt_ms", stages.get("rtt_ms"))) is not None:
            self._drafts.append(draft_ms)

    @property
    def curve(self) -> list[tuple[float, float]]:
        """(time, lag) over the last two minutes."""
        return list(self._lags)

    def judge(self) -> Judgement:
        """How it stands."""
        if not self._lags:
            return Judgement()
        now_s, lag_s = self._lags[-1]
        recent = [lag for at, lag in self._lags if at > now_s - RECENT_S]
        before = [lag for at, lag in self._lags if now_s - BEFORE_S - RECENT_S <= at <= now_s - BEFORE_S]
        growing = bool(before) and fmean(recent) > fmean(before) + GROWTH_S
        draft_ms = fmean(self._drafts) if self._drafts else 0.0
        return Judgement(lag_s, growing, self._cause(lag_s, draft_ms), self._backlog_s, draft_ms)

    def _cause(self, lag_s: float, draft_ms: float) -> Cause:
        if lag_s < BEHIND_S:
            return Cause.NONE
        if self._backlog_s > lag_s / 3:
            return Cause.RECOGNISER
        return Cause.TRANSLATOR if draft_ms > SLOW_DRAFT_MS else Cause.GRAMMAR
