"""Release policies: how many tokens of a draft may become stable.

One function, `decide`, serves the first decision and every later one on the same draft (release on commit). It is pure,
total and monotone in the frontier: a larger frontier never releases less. It never splits a word or a grapheme
cluster, and it never releases a token whose row is missing or non-finite, unless the utterance is final: then all of
the source is accessible, rows decide nothing, and the whole draft is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Le

from engine.alignatt.boundaries import safe_cut, word_starts
from engine.alignatt.draft import Draft
from engine.alignatt.frontier import Frontier
from engine.alignatt.provenance import Provenance, provenance

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


def decide(
    draft: Draft,
    frontier: Frontier,
    policy: Policy,
    *,
    previous_text: str | None = None,
    prefill_words: int = 0,
) -> Decision:
    """Decide on a draft. `previous_text` is the draft before this one behind the same released prefix (for
    agreement), `prefill_words` the number of target words already released (for `wait_k`)."""
    tokens = len(draft.token_ids)
    if frontier.final:
        return Decision(tokens, draft.finish, ("",) * tokens)
    if policy.name == "alignatt":
        verdicts = _with_agreement(
            _alignatt(_masses(draft, frontier, policy), policy), _agree(draft, previous_text), policy
        )
    elif policy.name == "hold_n":
        verdicts = _hold_words(draft, len(word_starts(draft.pieces)) - policy.hold_n, HOLD_N)
    elif policy.name == "wait_k":
        verdicts = _hold_words(draft, frontier.accessible(0) - policy.wait_k - prefill_words, WAIT_K)
    else:
        verdicts = _agree(draft, previous_text)
    passed = next((at for at, verdict in enumerate(verdicts) if verdict), tokens)
    allowed = safe_cut(draft.pieces, passed, draft.finish)
    released = _hold_back(draft, allowed, policy)
    if released < allowed:
        reason = HOLD_BACK
    elif passed < tokens:
        reason = verdicts[passed]
    else:
        reason = draft.finish if released == tokens else UNIT_INCOMPLETE
    return Decision(released, reason, verdicts)


def _masses(draft: Draft, frontier: Frontier, policy: Policy) -> Provenance:
    return provenance(draft, frontier.accessible(policy.border_margin, policy.heard_margin))


def _with_agreement(verdicts: Sequence[str], agreement: Sequence[str], policy: Policy) -> tuple[str, ...]:
    """Verdicts of attention, softened or sharpened by those of agreement."""
    if policy.agreement == "off":
        return tuple(verdicts)
    pairs = zip(verdicts, agreement, strict=True)
    if policy.agreement == "always":
        return tuple(verdict or differs for verdict, differs in pairs)
    return tuple("" if verdict == SOURCE_FRONTIER and not differs else verdict for verdict, differs in pairs)


def _alignatt(masses: Provenance, policy: Policy) -> tuple[str, ...]:
    return tuple(
        _gate(missing, finite, accessible, inaccessible, prompt, policy)
        for missing, finite, accessible, inaccessible, prompt in zip(
            masses.missing.tolist(),
            masses.finite.tolist(),
            masses.accessible.tolist(),
            masses.inaccessible.tolist(),
            masses.prompt.tolist(),
            strict=True,
        )
    )


def _gate(missing: bool, finite: bool, accessible: float, inaccessible: float, prompt: float, policy: Policy) -> str:
    if missing:
        return OBSERVER_EMPTY
    if not finite:
        return NONFINITE
    if inaccessible >= policy.soft_edge and inaccessible > policy.theta * (accessible + inaccessible):
        return SOURCE_FRONTIER
    return WEAK if accessible < policy.min_accessible or prompt > policy.max_prompt else ""


def _hold_words(draft: Draft, words: int, reason: str) -> tuple[str, ...]:
    """Let the first `words` words pass."""
    starts = [*word_starts(draft.pieces), len(draft.pieces)]
    limit = starts[min(max(words, 0), len(starts) - 1)]
    return ("",) * limit + (reason,) * (len(draft.pieces) - limit)


def _hold_back(draft: Draft, allowed: int, policy: Policy) -> int:
    """What of the first `allowed` tokens remains after `hold_back` and `min_emit`; monotone in `allowed`."""
    if not (policy.hold_back or policy.min_emit):
        return allowed
    starts = [at for at in word_starts(draft.pieces) if at < allowed]
    words = len(starts) - policy.hold_back
    if words < max(1, policy.min_emit):
        return 0
    return safe_cut(draft.pieces, starts[words], draft.finish) if policy.hold_back else allowed


def _agree(draft: Draft, previous_text: str | None) -> tuple[str, ...]:
    """Let pass what the previous draft said too, token by token from the start."""
    agreed = 0
    if previous_text is not None:
        before, so_far = previous_text.encode(), b""
        for piece in draft.pieces:
            so_far += piece
            if not before.startswith(so_far):
                break
            agreed += 1
    return ("",) * agreed + (LOCAL_AGREEMENT,) * (len(draft.pieces) - agreed)


def explain(draft: Draft, frontier: Frontier, policy: Policy, decision: Decision) -> tuple[dict[str, Any], ...]:
    """The trace: one record per token with the keys of the session log.

    `suffix` is mass on earlier target, `row` the mass of each source unit.
    """
    masses = _masses(draft, frontier, policy)
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
