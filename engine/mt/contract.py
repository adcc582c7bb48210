"""The two levels of translation: a model with attention rows, and a session that decides what is stable."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from engine.alignatt.draft import Draft
from engine.asr.contract import Word

Cancel = Callable[[], bool]
Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """What is translated: the source units of the open utterance, and what may be said around them.

    `units` are the whole source (committed and tail alike), `separator` joins them (" ", or "" for scripts without
    spaces). `history` holds (source, target) pairs of earlier utterances, oldest first.
    """

    units: tuple[str, ...]
    source_lang: str
    target_lang: str
    separator: str = " "
    context: str = ""
    history: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        return self.separator.join(self.units)


UNHEALTHY_RATE = 0.02
UNHEALTHY_AFTER_ROWS = 50
WINDOW_ROWS = 500  # what went well hours ago says nothing of now


class RecentRows:
    """Of the newest attention rows, which could not be used. Read from any thread, written under its owner's lock."""

    __slots__ = ("_bad",)

    def __init__(self) -> None:
        self._bad: deque[bool] = deque(maxlen=WINDOW_ROWS)

    def add(self, bad: Iterable[bool]) -> None:
        """One entry a row, in order."""
        self._bad.extend(bad)

    @property
    def bad_rate(self) -> float:
        """Share of them, 0 without any."""
        bad = tuple(self._bad)
        return sum(bad) / len(bad) if bad else 0.0

    @property
    def unhealthy(self) -> bool:
        """Whether so many could not be used that attention is not to be relied on."""
        return len(self._bad) >= UNHEALTHY_AFTER_ROWS and self.bad_rate > UNHEALTHY_RATE


@dataclass(slots=True)
class CaptureHealth:
    """Counters of one translator's attention rows, and the mode it runs in.

    `reason`: why it is not a better mode; "" when it is the one that was asked for. `stand_in`: a sentence that says
    which translator takes the place of the preset's, and why; "" when it is the preset's own. `heads_note`: a sentence
    that says so when the heads are not those of the direction, else "". `failure`: a sentence when no draft can be made
    any more.
    """

    mode: str = "eager"
    self_test: str = "not run"
    rows_expected: int = 0
    rows_missing: int = 0
    rows_nonfinite: int = 0
    reason: str = ""
    stand_in: str = ""
    heads_note: str = ""
    failure: str = ""

    recent: RecentRows = field(default_factory=RecentRows, init=False)

    def count(self, missing: Sequence[bool], nonfinite: Sequence[bool]) -> None:
        """Take in the rows of a draft: for each whether it did not arrive, and whether it is no distribution."""
        self.rows_expected += len(missing)
        self.rows_missing += sum(missing)
        self.rows_nonfinite += sum(nonfinite)
        self.recent.add(lost or bad for lost, bad in zip(missing, nonfinite, strict=True))

    @property
    def bad_rate(self) -> float:
        """Share of the newest expected rows that were missing or non-finite."""
        return self.recent.bad_rate

    @property
    def ok(self) -> bool:
        """Whether the attention rows can be relied on now."""
        return not (self.failure or self.recent.unhealthy or self.self_test == "failed")


class TranslationError(Exception):
    """A draft that could not be made; the message is one sentence."""


class Translator(Protocol):
    """A model that drafts and reports where each token looked. Several sessions may share one."""

    health: CaptureHealth
    supports_shared_kv: bool

    def draft(
        self,
        session_id: str,
        source: Source,
        prefill_ids: Sequence[int],
        max_new_tokens: int,
        cancel: Cancel,
    ) -> Draft:
        """Greedy tokens behind `prefill_ids` (released target tokens), one row per token.

        Returns a draft with finish "cancelled" as soon as `cancel()` is true. Raises `TranslationError`.
        """
        ...

    def count_tokens(self, text: str) -> int:
        """Length of a text in tokens, for the draft budget."""
        ...

    def encode_target(self, text: str) -> list[int]:
        """Token ids of target text that was accepted elsewhere (a reconnect), as a prefill."""
        ...

    def close_session(self, session_id: str) -> None:
        """Drop whatever is cached for this session."""
        ...

    def close(self) -> None:
        """Free the model."""
        ...


@dataclass(frozen=True, slots=True)
class CaptionState:
    """What a translation session has to show for one utterance. `stable` is cumulative and append-only.

    `engine_call` is false when the decision was made again on the cached draft (release on commit).
    """

    utterance_id: int
    stable: str
    held: str
    covered_source_units: int | None
    final: bool
    reason: str
    engine_call: bool
    stages: dict[str, float] = field(default_factory=dict)
    tokens: tuple[dict[str, Any], ...] = ()


class TranslationSession(Protocol):
    """One speaker's translation, utterance after utterance."""

    def update(
        self,
        utterance_id: int,
        committed: Sequence[Word],
        tail: Sequence[Word],
        clock_s: float,
        final: bool,
        cancel: Cancel,
    ) -> CaptionState:
        """Translate the full state of an utterance. Raises `TranslationError`; the session stays usable."""
        ...

    def close(self) -> None:
        """Drop what is cached for this session."""
        ...
