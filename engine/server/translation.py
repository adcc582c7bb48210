"""One connection's translation: updates of protocol v1 in, answers out, over the session of a local translator.

Adds to the session what the protocol asks for: overrides of a client, cumulative text with its delta, the closing of
utterances that grow too long, and finals that come again. An utterance that is too long is translated in segments, each
an utterance of its own for the translator; on the wire its text goes on growing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

from engine.alignatt import policy as reasons
from engine.alignatt.policy import Policy
from engine.alignatt.units import separator
from engine.asr.contract import Utterance, Word
from engine.asr.utterances import best_pause
from engine.mt.contract import Cancel, CaptionState, Translator
from engine.mt.session import PARTIAL_TOKENS, LocalTranslationSession
from engine.scheduler import Update
from engine.server.protocol import Answer, Init, Overrides

logger = logging.getLogger("surtitle.server")

Values = TypeVar("Values", Policy, "Terms")

MAX_UTTERANCE_WORDS = 120
CHARS_PER_WORD = 10  # mean length beyond which an utterance is too long by its letters

REPEATED_FINAL = "scheduler:utterance_closed"


class Unfinished(Enum):
    """Why `advance` has no answer: the same update must be continued, or a newer one has taken its place."""

    MORE = "more"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True)
class Terms:
    """How one session translates: the preset's values with the client's overrides."""

    policy: Policy
    max_history: int = 0
    partial_limit: int = PARTIAL_TOKENS
    reuse: bool = True
    inaccessible_s: float = 0.0
    lcp_stability: bool = False
    max_words: int = MAX_UTTERANCE_WORDS

    def overridden(self, overrides: Overrides | None) -> Terms:
        """These terms with what a client asked for."""
        if overrides is None:
            return self
        asked = overrides
        policy = _with(
            self.policy,
            hold_back=asked.translation_alignatt_hold_back_target_units,
            min_emit=asked.translation_alignatt_min_emit_target_units,
            border_margin=asked.translation_alignatt_border_margin,
        )
        inaccessible_ms = asked.translation_alignatt_inaccessible_ms
        return _with(
            self,
            policy=policy,
            max_history=asked.max_history_utterances,
            partial_limit=asked.partial_max_new_tokens,
            reuse=asked.translation_alignatt_commit_fast_path,
            inaccessible_s=None if inaccessible_ms is None else inaccessible_ms / 1000,
            lcp_stability=asked.translation_alignatt_source_lcp_stability,
        )


class Stopwatch:
    """Times of one answer in ms, as `Answer` names them. Started and read in the thread that makes the answer."""

    __slots__ = ("_cpu_s", "_queued_s", "_wall_s")

    def __init__(self, arrived: float) -> None:
        """`arrived`: `time.monotonic()` of the frame."""
        self._queued_s = time.monotonic() - arrived
        self._wall_s, self._cpu_s = time.perf_counter(), time.thread_time()

    def read(self) -> dict[str, float]:
        wall_s, cpu_s = time.perf_counter() - self._wall_s, time.thread_time() - self._cpu_s
        return {"queued_ms": _ms(self._queued_s), "server_ms": _ms(wall_s), "server_cpu_ms": _ms(cpu_s)}


class WireTranslation:
    """Not thread-safe: one caller at a time, but `abandon` from anywhere.

    `terms` are those of the session, with the client's overrides. `violations` counts text that would have changed what
    was sent before; it is never sent.
    """

    def __init__(
        self,
        translator: Translator,
        session_id: str,
        init: Init,
        terms: Terms,
    ) -> None:
        self.terms = terms.overridden(init.overrides)
        self._notice = ""
        accepted = init.accepted_target_prefix or ""
        self.session = LocalTranslationSession(
            translator,
            self.terms.policy,
            session_id,
            init.source_lang.lower(),
            init.target_lang.lower(),
            context=init.context_text or "",
            max_history=self.terms.max_history,
            history=[(source, target) for source, target in init.history],
            accepted_prefix=accepted,
            partial_limit=self.terms.partial_limit,
            reuse=self.terms.reuse,
            on_unhealthy=self._note,
            on_context_cut=self._note,
        )
        self._separator = separator(init.target_lang)
        self._sent = accepted
        self._utterance_id: int | None = None
        self._segment = 0
        self._done_words = 0
        self._done_text = ""
        self._covered: int | None = None
        self._covered_before = 0
        self._calls = 0
        self._closed = self._forcing = False
        self._units: tuple[str, ...] = ()
        self.violations = 0

    def needs_engine(self, update: Update) -> bool:
        """Whether `advance` would call the model; if not, it takes well under a millisecond."""
        utterance = update.utterance
        if utterance.utterance_id != self._utterance_id:
            return bool(utterance.committed or utterance.tail)
        words = utterance.committed[self._done_words :]
        if self._closed:
            return bool(words) and utterance.final
        if self._forcing or self._too_long(words):
            return True
        return self.session.needs_engine(self._segment, words, self._tail(utterance, words), utterance.final)

    def advance(self, update: Update, cancel: Cancel) -> Answer | Unfinished:
        """Translate an update, or one segment of it. Raises `TranslationError`; the session stays usable."""
        started, utterance = Stopwatch(update.queued_at), update.utterance
        if utterance.utterance_id != self._utterance_id:
            self._begin(utterance.utterance_id)
        words = utterance.committed[self._done_words :]
        if self._closed:
            if not utterance.final:
                return Unfinished.SUPERSEDED
            if not words:
                return self._answer(update, self._sent, "", REPEATED_FINAL, started)
            self._closed = False  # the server had closed it, and there was more to come
            self._covered_before, self._covered = self._done_words, None
        self._forcing = self._forcing or (not utterance.final and self._too_long(words))
        closing = utterance.final or self._forcing
        part = words[: self._cut(words)] if closing else words
        calls = self.session.engine_calls
        state = self._update(update, part, closing, cancel)
        self._calls += self.session.engine_calls - calls
        if state.reason == reasons.SUPERSEDED:
            return Unfinished.SUPERSEDED
        self._covered = state.covered_source_units
        text, held = self._join(state)
        if closing:
            self._done_words, self._done_text = self._done_words + len(part), text
            self._segment += 1
            if len(part) < len(words):
                self._covered_before, self._covered = self._done_words, None
                return Unfinished.MORE
            self._closed, self._forcing = True, False
        return self._answer(update, text, held, state.reason, started)

    def abandon(self) -> None:
        """See `LocalTranslationSession.abandon`."""
        self.session.abandon()

    def close(self) -> None:
        """Drop what the translator caches for this session; waits for a draft in progress."""
        self.session.close()

    # ------------------------------------------------------------ parts

    def _note(self, sentence: str) -> None:
        self._notice = " ".join(filter(None, (self._notice, sentence)))

    def _begin(self, utterance_id: int) -> None:
        if self._utterance_id is not None:
            self._sent = ""  # what was accepted at the beginning belongs to the first utterance
        self._utterance_id, self._closed, self._forcing = utterance_id, False, False
        self._segment += 1
        self._done_words, self._done_text, self._units = 0, "", ()
        self._covered_before, self._covered = 0, None

    def _join(self, state: CaptionState) -> tuple[str, str]:
        """Text of the whole utterance so far, and what is held behind it."""
        if not self._done_text:
            return state.stable, state.held
        if not state.stable:
            return self._done_text, self._separator + state.held if state.held else ""
        return self._done_text + self._separator + state.stable, state.held

    def _answer(self, update: Update, text: str, held: str, reason: str, started: Stopwatch) -> Answer:
        if not text.startswith(self._sent):
            self.violations += 1
            logger.error("utterance %s: %r would replace %r", self._utterance_id, text, self._sent)
            text, held = self._sent, ""
        delta, self._sent = text[len(self._sent) :], text
        covered = self._covered_before + (self._covered or 0)
        calls, self._calls = self._calls, 0
        notice, self._notice = self._notice, ""
        return Answer(
            seq=update.tag,
            utterance_id=update.utterance.utterance_id,
            final=self._closed,
            committed_text=text,
            committed_delta=delta,
            buffer_text=held,
            covered_source_units=covered or None,
            stop_reason=reason,
            forced_final=self._closed and not update.utterance.final,
            engine_calls=calls,
            notice=notice,
            **started.read(),
        )

    def _cut(self, words: Sequence[Word]) -> int:
        """How many words to close at once: all of them, or as many as lead to the best place for a cut."""
        most = self._fitting(words, self.terms.max_words)
        if len(words) <= most or self._fitting(words, self.terms.max_words * 5 // 4) == len(words):
            return len(words)
        fewest = min(most, max(most // 2, self._covered or 0))
        return best_pause(words, fewest, most) or most

    @staticmethod
    def _fitting(words: Sequence[Word], limit: int) -> int:
        """How many of the words (at least one) stay within a limit of words and letters."""
        letters = 0
        for count, word in enumerate(words[:limit]):
            letters += len(word.text)
            if count and letters > limit * CHARS_PER_WORD:
                return count
        return min(limit, len(words))

    def _too_long(self, words: Sequence[Word]) -> bool:
        return self._fitting(words, self.terms.max_words) < len(words)

    def _tail(self, utterance: Utterance, words: Sequence[Word]) -> tuple[Word, ...]:
        """The tail as far as a draft reads it."""
        known = (*words, *utterance.tail)
        return utterance.tail[: max(0, self._fitting(known, self.terms.max_words) - len(words))]

    def _update(self, update: Update, words: Sequence[Word], final: bool, cancel: Cancel) -> CaptionState:
        tail = () if final else self._tail(update.utterance, words)
        known = [*words, *tail]
        accessible = len(words) if final else self._accessible(update, words, known)
        state = self.session.update(
            self._segment, known[:accessible], known[accessible:], update.clock_s, final, cancel
        )
        if self.terms.lcp_stability:
            self._units = tuple(word.text for word in known)
        return state

    def _accessible(self, update: Update, words: Sequence[Word], known: Sequence[Word]) -> int:
        """Committed words that may be released against.

        `inaccessible_s`: not those that ended so shortly before the clock; `lcp_stability`: only those that already
        stood in the update before, at the same place.
        """
        count, terms = len(words), self.terms
        if terms.inaccessible_s:
            latest_s = update.clock_s - terms.inaccessible_s
            count = next((at for at, word in enumerate(words) if word.end_s > latest_s), count)
        if terms.lcp_stability:
            pairs = enumerate(zip(self._units, known, strict=False))
            same = next((at for at, (old, new) in pairs if old != new.text), min(len(self._units), len(known)))
            count = min(count, same)
        return count


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)


def _with(value: Values, **changes: Any) -> Values:
    """A dataclass with the changes that are not None."""
    return replace(value, **{name: change for name, change in changes.items() if change is not None})
