"""Release policies: how many tokens of a draft may become stable.

One `Decider` serves the first decision and every later one on the same draft (release on commit); what does not depend
on the frontier is worked out once. A decision is pure, total and monotone in the frontier: a larger frontier never
releases less. It never splits a word or a grapheme cluster, and it never releases a token whose row is missing or
non-finite, unless the utterance is final: then all of the source is accessible, rows decide nothing, and the whole
draft is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Le

from engine.alignatt.boundaries import safe_cuts, word_starts
from engine.alignatt.draft import Draft
from engine.alignatt.frontier import Frontier
from engine.alignatt.provenance import finite_rows, looked_at, provenance, split_masses

OBSERVER_EMPTY = "alignatt:observer_empty"
NONFINITE = "alignatt:provenance_nonfinite"
SOURCE_FRONTIER = "alignatt:source_frontier"
WEAK = "alignatt:provenance_weak"
UNIT_INCOMPLETE = "alignatt:target_unit_incomplete"
COMMIT_FAST_PATH = "alignatt:commit_fast_path"
SOURCE_REWRITTEN = "alignatt:source_rewritten"
HOLD_N = "policy:hold_n"
LOCAL_AGREEMENT = "policy:local_agreement"
WAIT_K = "policy:wait_k"
HOLD_BACK = "policy:hold_back"
PREFIX_UNCHANGED = "scheduler:source_prefix_unchanged"
EMPTY_SOURCE = "scheduler:empty_source"
SUPERSEDED = "scheduler:superseded"

Mass = Annotated[float, Ge(0), Le(1)]
Count = Annotated[int, Ge(0), Le(64)]


@dataclass(frozen=True, slots=True)
class Policy:
    """Values of a policy. Masses are attention probabilities; presets hold the values, this class the defaults.

    `alignatt` withholds a token when its mass beyond the frontier is at least `soft_edge` and more than `theta` of its
    source mass, when its accessible mass is below `min_accessible`, or when its mass on the rest of the prompt is above
    `max_prompt`: what the source does not explain is a guess, and most guesses change when more source is heard.
    `border_margin`: the last committed units that still count as inaccessible. `heard_margin`: how many units from the
    end of what was heard a unit must lie to be accessible although it is not committed (unset: no such unit is).
    `agreement`: where two successive drafts must say the same: nowhere ("off"), for tokens that the frontier would
    withhold ("beyond": they are released when both drafts have them), or for every token ("always").
    `hold_n` and `wait_k` count target words. `top_k`: heads used of the head set.
    `fallback`: the policy that takes over when capture is unhealthy. Under every policy, `hold_back` target words at
    the end of what would be released stay held, and fewer than `min_emit` words of a draft are not released at all.
    """

    name: Literal["alignatt", "hold_n", "local_agreement", "wait_k"] = "alignatt"
    top_k: Annotated[int, Ge(1), Le(64)] = 4
    soft_edge: Mass = 0.03
    theta: Mass = 0.5
    border_margin: Count = 0
    heard_margin: Count | None = None
    agreement: Literal["off", "beyond", "always"] = "off"
    min_accessible: Mass = 0.0
    max_prompt: Mass = 1.0
    hold_n: Count = 3
    wait_k: Count = 3
    hold_back: Count = 0
    min_emit: Count = 0
    fallback: Literal["hold_n", "local_agreement"] = "local_agreement"

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid"}

    def fall_back(self) -> Policy:
        """This policy with its fallback in charge."""
        return replace(self, name=self.fallback)


@dataclass(frozen=True, slots=True)
class Decision:
    """How much of a draft is released: the first `released` tokens.

    `reason` names what stopped the release, or the draft's own finish when nothing did. `verdicts` has one entry per
    token: "" when it passed its gate, else the reason that withholds it (a token may pass its gate and still be held
    because an earlier one did not, or because its word is not complete).
    """

    released: int
    reason: str
    verdicts: tuple[str, ...]


class Decider:
    """Decides on one draft under one policy, as often as the frontier moves.

    `previous_text` is the draft before this one behind the same released prefix (for agreement), `prefill_words` the
    number of target words already released (for `wait_k`). `starts`: the tokens that begin a word; `looks_at`: the
    source unit with the most mass of each token, -1 for none.
    """

    __slots__ = ("_agreed", "_cuts", "_gates", "_policy", "_prefill_words", "draft", "looks_at", "starts")

    def __init__(
        self, draft: Draft, policy: Policy, *, previous_text: str | None = None, prefill_words: int = 0
    ) -> None:
        self.draft = draft
        self.starts: tuple[int, ...] = tuple(word_starts(draft.pieces))
        self.looks_at: tuple[int, ...] = tuple(looked_at(draft).tolist())
        self._policy = policy
        self._prefill_words = prefill_words
        self._cuts = safe_cuts(draft.pieces, draft.finish)
        self._agreed = _agreed(draft, previous_text)
        self._gates = _gates(draft, policy) if policy.name == "alignatt" else None

    def decide(self, frontier: Frontier) -> Decision:
        """How much may be released at this frontier."""
        draft, tokens = self.draft, len(self.draft.token_ids)
        if frontier.final:
            return Decision(tokens, draft.finish, ("",) * tokens)
        verdicts = self._verdicts(frontier)
        passed = next((at for at, verdict in enumerate(verdicts) if verdict), tokens)
        allowed = self._cuts[passed]
        released = self._hold_back(allowed)
        if released < allowed:
            reason = HOLD_BACK
        elif passed < tokens:
            reason = verdicts[passed]
        else:
            reason = draft.finish if released == tokens else UNIT_INCOMPLETE
        return Decision(released, reason, verdicts)

    def _verdicts(self, frontier: Frontier) -> tuple[str, ...]:
        policy = self._policy
        if self._gates is not None:
            accessible = frontier.accessible(policy.border_margin, policy.heard_margin)
            return self._with_agreement(self._gates[min(accessible, len(self._gates) - 1)])
        if policy.name == "hold_n":
            return self._hold_words(len(self.starts) - policy.hold_n, HOLD_N)
        if policy.name == "wait_k":
            return self._hold_words(frontier.accessible(0) - policy.wait_k - self._prefill_words, WAIT_K)
        return self._first(self._agreed, LOCAL_AGREEMENT)

    def _with_agreement(self, verdicts: tuple[str, ...]) -> tuple[str, ...]:
        """Verdicts of attention, softened or sharpened by those of agreement."""
        agreed = self._agreed
        if self._policy.agreement == "always":
            return (*verdicts[:agreed], *(verdict or LOCAL_AGREEMENT for verdict in verdicts[agreed:]))
        if self._policy.agreement == "beyond":
            return (
                *("" if verdict == SOURCE_FRONTIER else verdict for verdict in verdicts[:agreed]),
                *verdicts[agreed:],
            )
        return verdicts

    def _hold_words(self, words: int, reason: str) -> tuple[str, ...]:
        """Let the first `words` words pass."""
        starts = [*self.starts, len(self.draft.pieces)]
        return self._first(starts[min(max(words, 0), len(starts) - 1)], reason)

    def _first(self, tokens: int, reason: str) -> tuple[str, ...]:
        return ("",) * tokens + (reason,) * (len(self.draft.pieces) - tokens)

    def _hold_back(self, allowed: int) -> int:
        """What of the first `allowed` tokens remains after `hold_back` and `min_emit`; monotone in `allowed`."""
        policy = self._policy
        if not (policy.hold_back or policy.min_emit):
            return allowed
        starts = [at for at in self.starts if at < allowed]
        words = len(starts) - policy.hold_back
        if words < max(1, policy.min_emit):
            return 0
        return self._cuts[starts[words]] if policy.hold_back else allowed


def decide(
    draft: Draft,
    frontier: Frontier,
    policy: Policy,
    *,
    previous_text: str | None = None,
    prefill_words: int = 0,
) -> Decision:
    """One decision on a draft; see `Decider`."""
    return Decider(draft, policy, previous_text=previous_text, prefill_words=prefill_words).decide(frontier)


_GATES = ("", OBSERVER_EMPTY, NONFINITE, SOURCE_FRONTIER, WEAK)
_NAMES = np.array(_GATES, object)


def _gates(draft: Draft, policy: Policy) -> list[tuple[str, ...]]:
    """What AlignAtt says of each token at every frontier, from 0 accessible units to all."""
    before, behind = split_masses(draft)
    withheld = (behind >= policy.soft_edge) & (behind > policy.theta * before[-1])
    weak = (before < policy.min_accessible) | (draft.prompt > policy.max_prompt)
    gates = np.where(withheld, _GATES.index(SOURCE_FRONTIER), np.where(weak, _GATES.index(WEAK), 0))
    gates[:, ~finite_rows(draft)] = _GATES.index(NONFINITE)
    gates[:, draft.missing] = _GATES.index(OBSERVER_EMPTY)
    return [tuple(row) for row in _NAMES[gates].tolist()]


def _agreed(draft: Draft, previous_text: str | None) -> int:
    """How many tokens from the start the previous draft said too."""
    if previous_text is None:
        return 0
    before, so_far = previous_text.encode(), b""
    for at, piece in enumerate(draft.pieces):
        so_far += piece
        if not before.startswith(so_far):
            return at
    return len(draft.pieces)


def explain(draft: Draft, frontier: Frontier, policy: Policy, decision: Decision) -> tuple[dict[str, Any], ...]:
    """The trace: one record per token with the keys of the session log.

    `suffix` is mass on earlier target, `row` the mass of each source unit.
    """
    masses = provenance(draft, frontier.accessible(policy.border_margin, policy.heard_margin))
    return tuple(
        {
            "text": piece.decode("utf-8", errors="replace"),
            "released": at < decision.released,
            "unit": unit if unit >= 0 else None,
            "accessible": accessible,
            "inaccessible": inaccessible,
            "prompt": prompt,
            "suffix": suffix,
            "row": row,
            "reason": _token_reason(at, decision),
        }
        for at, (piece, unit, accessible, inaccessible, prompt, suffix, row) in enumerate(
            zip(
                draft.pieces,
                masses.unit.tolist(),
                _rounded(masses.accessible),
                _rounded(masses.inaccessible),
                _rounded(draft.prompt),
                _rounded(draft.suffix),
                [_rounded(row) for row in draft.rows],
                strict=True,
            )
        )
    )


def _token_reason(at: int, decision: Decision) -> str:
    if at < decision.released:
        return ""
    return decision.verdicts[at] or decision.reason


def _rounded(values: Any) -> Sequence[float | None]:
    """Masses for the log, where JSON has no NaN."""
    return [round(value, 4) if value == value else None for value in values.tolist()]
