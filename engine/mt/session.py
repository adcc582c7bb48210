"""One speaker's translation: drafts of a translator, decided by a policy, utterance after utterance.

Stable text is append-only by construction: released token ids only grow, and every draft continues them. A frontier
that moves over an unchanged source is decided on the cached draft, without an engine call (release on commit).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from engine.alignatt import policy as reasons
from engine.alignatt.boundaries import word_starts
from engine.alignatt.clean import clean
from engine.alignatt.draft import Draft
from engine.alignatt.frontier import Frontier
from engine.alignatt.policy import Decider, Decision, Policy, explain
from engine.alignatt.provenance import finite_rows
from engine.alignatt.units import separator, split_units
from engine.asr.contract import Word
from engine.mt.contract import Cancel, CaptionState, RecentRows, Source, Translator

logger = logging.getLogger("surtitle.mt")

MAX_ACCEPTED_TOKENS = 256
PARTIAL_TOKENS = 16


def partial_budget(source_tokens: int, limit: int = PARTIAL_TOKENS) -> int:
    """New tokens of a draft of an open utterance."""
    return min(limit, max(4, source_tokens + 8))


def final_budget(source_tokens: int) -> int:
    """New tokens of a draft that completes an utterance."""
    return min(160, max(32, 3 * source_tokens + 24))


@dataclass(slots=True)
class SessionHealth:
    """Attention rows of one session: how many were asked for, and how many could not be used.

    `bad_rate`: the share of the newest rows that could not be used.
    """

    rows: int = 0
    missing: int = 0
    nonfinite: int = 0
    fallback: str | None = None
    recent: RecentRows = field(default_factory=RecentRows)

    @property
    def bad_rate(self) -> float:
        return self.recent.bad_rate


@dataclass(slots=True)
class _OpenUtterance:
    """What is known of the utterance in progress. `accepted`: target text shown before this session began.

    `decider` holds the newest draft, of which `draft_released` tokens are released.
    """

    utterance_id: int
    accepted: str = ""
    accepted_ids: list[int] | None = None
    released_ids: list[int] = field(default_factory=list)
    released: bytes = b""
    released_pieces: list[bytes] = field(default_factory=list)
    covered: int = 0
    covered_source: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    decider: Decider | None = None
    draft_released: int = 0


class LocalTranslationSession:
    """`TranslationSession` over a local translator. Not thread-safe: one caller at a time.

    `history` and `accepted_prefix` continue a session that was held elsewhere: earlier (source, target) pairs, and the
    text already shown of the utterance that comes first, which stays as it is. `partial_limit` caps the drafts of open
    utterances, `reuse` allows decisions on cached drafts. `on_unhealthy` and `on_context_cut` are told a sentence when
    another policy takes over, and when the context first does not fit into the prompt; each at most once.
    """

    def __init__(
        self,
        translator: Translator,
        policy: Policy,
        session_id: str,
        source_lang: str,
        target_lang: str,
        *,
        context: str = "",
        max_history: int = 0,
        history: Sequence[tuple[str, str]] = (),
        accepted_prefix: str = "",
        partial_limit: int = PARTIAL_TOKENS,
        reuse: bool = True,
        trace: bool = False,
        on_unhealthy: Callable[[str], None] | None = None,
        on_context_cut: Callable[[str], None] | None = None,
    ) -> None:
        self._translator = translator
        self._policy = policy
        self._session_id = session_id
        self._languages = (source_lang, target_lang)
        self._context = context
        self._max_history = max_history
        self._trace = trace
        self._on_unhealthy = on_unhealthy
        self._on_context_cut = on_context_cut
        self._context_cut = False
        self._history = list(history)[-max_history:] if max_history else []
        self._accepted = accepted_prefix
        self._partial_limit = partial_limit
        self._reuse = reuse
        self._abandoned = False
        self._open = _OpenUtterance(-1)
        self.health = SessionHealth()
        self.engine_calls = 0
        self.released_tokens = 0

    def update(
        self,
        utterance_id: int,
        committed: Sequence[Word],
        tail: Sequence[Word],
        clock_s: float,
        final: bool,
        cancel: Cancel,
    ) -> CaptionState:
        """See `TranslationSession.update`. A cancelled draft leaves everything as it was (reason `superseded`)."""
        if utterance_id != self._open.utterance_id:
            self._open, self._accepted = _OpenUtterance(utterance_id, self._accepted), ""
        units = tuple([word.text for word in (*committed, *tail)])
        frontier = Frontier(len(committed), len(units), final)
        if not units:
            return self._state(frontier, Decision(0, reasons.EMPTY_SOURCE, ()), False, {})
        started = time.perf_counter()
        if (decider := self._reusable(units, final)) is not None:
            return self._decide_again(decider, frontier, started)
        drafted = self._draft(units, final, cancel)
        made = time.perf_counter()
        if drafted is None:
            return self._state(frontier, Decision(0, reasons.SUPERSEDED, ()), True, {"mt_ms": _ms(started, made)})
        decider = self._decider(drafted)
        self._open.units, self._open.decider, self._open.draft_released = units, decider, 0
        decision = decider.decide(frontier)
        stages = {"mt_ms": _ms(started, made), "decide_ms": _ms(made, time.perf_counter())}
        covered = self._open.covered_source
        rewritten = _words(covered) != _words(units[: len(covered)])
        self._open.covered_source = units[: self._open.covered]
        self._release(decider, decision)
        if rewritten:
            decision = replace(decision, reason=reasons.SOURCE_REWRITTEN)
        return self._state(frontier, decision, True, stages)

    def needs_engine(self, utterance_id: int, committed: Sequence[Word], tail: Sequence[Word], final: bool) -> bool:
        """Whether `update` would draft; if not, it returns in well under a millisecond."""
        units = tuple([word.text for word in (*committed, *tail)])
        return bool(units) and (utterance_id != self._open.utterance_id or self._reusable(units, final) is None)

    @property
    def held_tokens(self) -> int:
        """Draft tokens of the open utterance that are not stable."""
        return len(self._open.decider.draft.pieces) - self._open.draft_released if self._open.decider else 0

    def abandon(self) -> None:
        """Nobody waits for this session any more: a draft in progress ends, also that of a final. From any thread."""
        self._abandoned = True

    def close(self) -> None:
        """Drop what the translator caches for this session."""
        self._translator.close_session(self._session_id)

    # ------------------------------------------------------------ drafting

    def _reusable(self, units: tuple[str, ...], final: bool) -> Decider | None:
        """The cached draft if it still answers: same source, and not used up before the model had finished."""
        decider = self._open.decider
        if decider is None or units != self._open.units or not self._reuse:
            return None
        if decider.draft.finish == "stop":
            return decider
        more = not final and bool(decider.starts) and self._open.draft_released < decider.starts[-1]
        return decider if more else None

    def _draft(self, units: tuple[str, ...], final: bool, cancel: Cancel) -> Draft | None:
        source_lang, target_lang = self._languages
        source = Source(units, source_lang, target_lang, separator(source_lang), self._context, tuple(self._history))
        tokens = self._translator.count_tokens(source.text)
        budget = final_budget(tokens) if final else partial_budget(tokens, self._partial_limit)

        def stop() -> bool:
            return self._abandoned or (not final and cancel())  # a newer update never cancels a final

        draft = self._translator.draft(self._session_id, source, self._prefill(), budget, stop)
        self.engine_calls += 1
        if draft.finish == "cancelled":
            return None
        if draft.context_left_out and not self._context_cut:
            self._tell_context_cut(draft.context_left_out)
        self._count_rows(draft)
        return clean(draft, units, self._open.released_pieces)

    def _tell_context_cut(self, left_out: int) -> None:
        self._context_cut = True
        words = len(self._context.split())
        sentence = (
            f"The context is too long for the translator's prompt: {left_out} of its {words} words are left out; "
            "shorten it, or set a larger translator.context_tokens."
        )
        logger.warning(sentence)
        if self._on_context_cut:
            self._on_context_cut(sentence)

    def _prefill(self) -> list[int]:
        """Target tokens the draft continues: what was accepted elsewhere, then what was released here."""
        state = self._open
        if state.accepted_ids is None:
            # Of a very long text the end suffices, and the source must find room beside it.
            ids = self._translator.encode_target(state.accepted) if state.accepted else []
            state.accepted_ids = ids[-MAX_ACCEPTED_TOKENS:]
        return state.accepted_ids + state.released_ids

    def _count_rows(self, draft: Draft) -> None:
        finite = finite_rows(draft)
        self.health.recent.add((~finite | draft.missing).tolist())
        self.health.rows += len(draft.token_ids)
        self.health.missing += int(draft.missing.sum())
        self.health.nonfinite += int((~finite & ~draft.missing).sum())
        if self.health.missing:
            _error_once(reasons.OBSERVER_EMPTY, "attention rows were not delivered")
        if self.health.nonfinite:
            _error_once(reasons.NONFINITE, "attention rows are not finite")
        if self.health.fallback or not self.health.recent.unhealthy or self._policy.name != "alignatt":
            return
        self._policy = self._policy.fall_back()
        self.health.fallback = self._policy.name
        sentence = (
            f"{self.health.bad_rate:.0%} of the newest attention rows are unusable: "
            f"text is now released by the policy '{self._policy.name}'."
        )
        logger.error(sentence)
        if self._on_unhealthy:
            self._on_unhealthy(sentence)

    # ------------------------------------------------------------ deciding

    def _decide_again(self, decider: Decider, frontier: Frontier, started: float) -> CaptionState:
        """The same decision with a new frontier on the cached draft; no engine call."""
        before = self._open.draft_released
        decision = decider.decide(frontier)
        self._release(decider, decision)
        grew = self._open.draft_released > before
        if grew:
            decision = Decision(decision.released, reasons.COMMIT_FAST_PATH, decision.verdicts)
        elif not frontier.final:
            decision = Decision(decision.released, reasons.PREFIX_UNCHANGED, decision.verdicts)
        return self._state(frontier, decision, False, {"decide_ms": _ms(started, time.perf_counter())})

    def _decider(self, draft: Draft) -> Decider:
        """What decides on a new draft, with what the draft before it says behind today's released prefix."""
        state = self._open
        previous = _text_behind(state.decider.draft, state.draft_released) if state.decider else None
        return Decider(draft, self._policy, previous_text=previous, prefill_words=self._released_words())

    def _released_words(self) -> int:
        """Target words on screen (in scripts without spaces as `word_starts` counts them)."""
        accepted = split_units(self._open.accepted, self._languages[1])
        return len(accepted) + len(word_starts(self._open.released_pieces))

    def _release(self, decider: Decider, decision: Decision) -> None:
        """Append the newly released tokens of the draft to the stable text."""
        state, draft = self._open, decider.draft
        done, upto = state.draft_released, max(decision.released, state.draft_released)
        state.released_ids += draft.token_ids[done:upto]
        state.released_pieces += draft.pieces[done:upto]
        state.released += b"".join(draft.pieces[done:upto])
        state.draft_released = upto
        self.released_tokens += upto - done
        if upto > done:
            state.covered = max(state.covered, 1 + max(decider.looks_at[done:upto]))
            state.covered_source = state.units[: state.covered]

    def _state(
        self, frontier: Frontier, decision: Decision, engine_call: bool, stages: dict[str, float]
    ) -> CaptionState:
        state, draft = self._open, self._open.decider.draft if self._open.decider else None
        stable = _show(state.released, state.accepted)
        held = ""
        if draft is not None and not frontier.final and decision.reason != reasons.EMPTY_SOURCE:
            rest = b"".join(draft.pieces[state.draft_released :])
            held = _show(state.released + rest, state.accepted)[len(stable) :]
        if frontier.final:
            self._remember(frontier, stable)
        tokens = explain(draft, frontier, self._policy, decision) if self._trace and draft and decision.verdicts else ()
        return CaptionState(
            utterance_id=state.utterance_id,
            stable=stable,
            held=held,
            covered_source_units=state.covered or None,
            final=frontier.final,
            reason=decision.reason,
            engine_call=engine_call,
            stages=stages,
            tokens=tokens,
        )

    def _remember(self, frontier: Frontier, stable: str) -> None:
        if self._max_history and self._open.units and stable:
            source = separator(self._languages[0]).join(self._open.units)
            self._history = [*self._history, (source, stable)][-self._max_history :]


def _words(units: Sequence[str]) -> list[str]:
    """Units by their letters: a comma that comes or goes rewrites nothing."""
    return ["".join(filter(str.isalnum, unit)).casefold() for unit in units]


def _text_behind(draft: Draft, tokens: int) -> str:
    return b"".join(draft.pieces[tokens:]).decode("utf-8", errors="ignore")


def _show(data: bytes, accepted: str = "") -> str:
    """Released bytes as text behind what was accepted: no leading space, no unfinished character at the end."""
    text = data.decode("utf-8", errors="ignore")
    return accepted + (text if accepted and not accepted[-1].isspace() else text.lstrip())


def _ms(start: float, end: float) -> float:
    return round(1000 * (end - start), 3)


_reported: set[str] = set()


def _error_once(reason: str, what: str) -> None:
    """The first of its kind in this process is one error line; counters carry the rest."""
    if reason not in _reported:
        _reported.add(reason)
        logger.error("%s: %s", reason, what)
