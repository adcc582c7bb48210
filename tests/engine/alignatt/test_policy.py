"""Every gate by a table, and the properties that hold for every draft."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.alignatt import policy as reasons
from engine.alignatt.frontier import Frontier
from engine.alignatt.policy import Decider, Policy, decide, explain
from tests.engine.alignatt.helpers import make_draft

WORDS = [" Wir", " gehen", " heute", " nach", " Hause"]
ALIGNATT = Policy()


@pytest.mark.parametrize(
    ("looks_at", "committed", "released", "reason"),
    [
        ([0, 1, 2, 3, 3], 4, 4, reasons.UNIT_INCOMPLETE),  # all accessible: only the last word may go on
        ([0, 1, 2, 3, 3], 2, 2, reasons.SOURCE_FRONTIER),
        ([0, 3, 0, 0, 0], 2, 1, reasons.SOURCE_FRONTIER),  # stops at the first that fails
        ([3, 0, 0, 0, 0], 2, 0, reasons.SOURCE_FRONTIER),
        ([0, 1, 2, 3, 3], 0, 0, reasons.SOURCE_FRONTIER),
    ],
)
def test_frontier_gate(looks_at: list[int], committed: int, released: int, reason: str) -> None:
    decision = decide(make_draft(WORDS, looks_at), Frontier(committed, 4), ALIGNATT)
    assert (decision.released, decision.reason) == (released, reason)


@pytest.mark.parametrize(
    ("row", "released"),
    [
        ([0.4, 0.0, 0.02, 0.0], 1),  # below the soft edge
        ([0.01, 0.0, 0.02, 0.0], 1),  # most of the source mass lies beyond, but it is below the soft edge
        ([0.4, 0.0, 0.3, 0.0], 1),  # above the soft edge, but less than theta of the source mass
        ([0.2, 0.0, 0.3, 0.0], 0),  # both
        ([0.2, 0.0, 0.1, 0.15], 0),  # beyond is the sum of the units beyond, not the largest one
    ],
)
def test_soft_edge_and_theta(row: list[float], released: int) -> None:
    draft = make_draft([" Haus", " und"], rows=[row, row])
    assert decide(draft, Frontier(2, 4), ALIGNATT).released == released


@pytest.mark.parametrize(("margin", "released"), [(0, 3), (1, 2), (2, 1), (9, 0)])
def test_border_margin(margin: int, released: int) -> None:
    draft = make_draft(WORDS, [0, 1, 2, 3, 3])
    assert decide(draft, Frontier(3, 4), Policy(border_margin=margin)).released == released


@pytest.mark.parametrize(("margin", "released"), [(None, 1), (0, 4), (1, 3), (2, 2), (3, 1), (9, 1)])
def test_units_that_are_heard_long_enough_ago_are_accessible(margin: int | None, released: int) -> None:
    draft = make_draft(WORDS, [0, 1, 2, 3, 3])
    assert decide(draft, Frontier(1, 4), Policy(heard_margin=margin)).released == released


@pytest.mark.parametrize(
    ("agreement", "previous", "released", "reason"),
    [
        ("off", " Wir gehen heute nach", 2, reasons.SOURCE_FRONTIER),
        ("beyond", None, 2, reasons.SOURCE_FRONTIER),
        ("beyond", " Wir gehen heute zur", 3, reasons.SOURCE_FRONTIER),
        (
            "beyond",
            " Wir ruhen",
            2,
            reasons.SOURCE_FRONTIER,
        ),  # a token that looks at committed words needs no second draft
        ("always", None, 0, reasons.LOCAL_AGREEMENT),
        ("always", " Wir ruhen", 1, reasons.LOCAL_AGREEMENT),
        ("always", " Wir gehen heute nach", 2, reasons.SOURCE_FRONTIER),
    ],
)
def test_agreement_of_two_drafts(agreement: Any, previous: str | None, released: int, reason: str) -> None:
    decision = decide(
        make_draft(WORDS, [0, 1, 2, 3, 3]), Frontier(2, 4), Policy(agreement=agreement), previous_text=previous
    )
    assert (decision.released, decision.reason) == (released, reason)


def test_agreement_never_releases_a_row_that_cannot_be_read() -> None:
    draft = make_draft(WORDS, [0] * 5, missing=[1])
    decision = decide(draft, Frontier(4, 4), Policy(agreement="beyond"), previous_text=draft.text)
    assert (decision.released, decision.reason) == (1, reasons.OBSERVER_EMPTY)


def test_border_margin_ends_with_the_utterance() -> None:
    draft = make_draft(WORDS, [0, 1, 2, 3, 3])
    assert decide(draft, Frontier(4, 4, final=True), Policy(border_margin=3)).released == 5


@pytest.mark.parametrize(("minimum", "reason"), [(0.1, reasons.UNIT_INCOMPLETE), (0.5, reasons.WEAK)])
def test_minimum_accessible_mass(minimum: float, reason: str) -> None:
    draft = make_draft(WORDS, [0] * 5, source_mass=0.4)
    assert decide(draft, Frontier(4, 4), Policy(min_accessible=minimum)).reason == reason


@pytest.mark.parametrize(("maximum", "reason"), [(1.0, "stop"), (0.31, "stop"), (0.29, reasons.WEAK)])
def test_maximum_mass_on_the_rest_of_the_prompt(maximum: float, reason: str) -> None:
    draft = make_draft([" Haus"], [0], finish="stop", source_mass=0.4)  # 0.3 on the prompt, 0.3 on earlier target
    assert decide(draft, Frontier(4, 4), Policy(max_prompt=maximum)).reason == reason


@pytest.mark.parametrize(
    ("hold_back", "min_emit", "released", "reason"),
    [
        (0, 0, 3, reasons.SOURCE_FRONTIER),
        (1, 0, 2, reasons.HOLD_BACK),
        (2, 0, 1, reasons.HOLD_BACK),
        (3, 0, 0, reasons.HOLD_BACK),
        (0, 3, 3, reasons.SOURCE_FRONTIER),
        (0, 4, 0, reasons.HOLD_BACK),
        (1, 2, 2, reasons.HOLD_BACK),
        (1, 3, 0, reasons.HOLD_BACK),
    ],
)
def test_words_held_back_and_fewest_words(hold_back: int, min_emit: int, released: int, reason: str) -> None:
    draft = make_draft(WORDS, [0, 1, 2, 3, 3])
    policy = Policy(hold_back=hold_back, min_emit=min_emit)
    decision = decide(draft, Frontier(3, 4), policy)
    assert (decision.released, decision.reason) == (released, reason)
    assert decide(draft, Frontier(4, 4, final=True), policy).released == 5


def test_a_missing_row_is_withheld() -> None:
    draft = make_draft(WORDS, [0] * 5, missing=[1])
    decision = decide(draft, Frontier(4, 4), ALIGNATT)
    assert (decision.released, decision.reason) == (1, reasons.OBSERVER_EMPTY)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_withheld(value: float) -> None:
    draft = make_draft(WORDS, [0] * 5)
    draft.rows[2, 1] = value
    decision = decide(draft, Frontier(4, 4), ALIGNATT)
    assert (decision.released, decision.reason) == (2, reasons.NONFINITE)


@pytest.mark.parametrize(("hold", "released"), [(1, 4), (3, 2), (5, 0), (9, 0)])
def test_hold_n_holds_words(hold: int, released: int) -> None:
    decision = decide(make_draft(WORDS), Frontier(0, 4), Policy(name="hold_n", hold_n=hold))
    assert (decision.released, decision.reason) == (released, reasons.HOLD_N)


@pytest.mark.parametrize(
    ("k", "committed", "prefill", "released"), [(1, 3, 0, 2), (1, 3, 1, 1), (3, 3, 0, 0), (0, 4, 0, 4)]
)
def test_wait_k_counts_words(k: int, committed: int, prefill: int, released: int) -> None:
    policy = Policy(name="wait_k", wait_k=k)
    decision = decide(make_draft(WORDS, units=6), Frontier(committed, 6), policy, prefill_words=prefill)
    assert (decision.released, decision.reason) == (released, reasons.WAIT_K)


@pytest.mark.parametrize(
    ("previous", "released"),
    [(None, 0), ("", 0), (" Wir gehen heute zur", 3), (" Wir gehen heute nach Hause", 4), (" Ihr geht", 0)],
)
def test_local_agreement(previous: str | None, released: int) -> None:
    policy = Policy(name="local_agreement")
    assert decide(make_draft(WORDS), Frontier(0, 4), policy, previous_text=previous).released == released


def test_a_final_releases_the_whole_draft() -> None:
    draft = make_draft([" Haus", "."], [3, 3], finish="stop", missing=[0])
    decision = decide(draft, Frontier(4, 4, final=True), ALIGNATT)
    assert (decision.released, decision.reason) == (2, "stop")


def test_the_trace_names_unit_masses_and_reason() -> None:
    draft = make_draft(WORDS, [0, 1, 2, 3, 3])
    frontier = Frontier(2, 4)
    tokens = explain(draft, frontier, ALIGNATT, decide(draft, frontier, ALIGNATT))
    assert [token["released"] for token in tokens] == [True, True, False, False, False]
    assert [token["unit"] for token in tokens] == [0, 1, 2, 3, 3]
    assert tokens[0]["reason"] == ""
    assert tokens[2]["reason"] == reasons.SOURCE_FRONTIER
    for token in tokens:
        total = token["accessible"] + token["inaccessible"] + token["prompt"] + token["suffix"]
        assert total == pytest.approx(1, abs=1e-3)


def test_a_row_that_is_not_finite_appears_as_null_in_the_trace() -> None:
    draft = make_draft([" a", " b"], [0, 0])
    draft.rows[0] = np.nan
    frontier = Frontier(4, 4)
    token = explain(draft, frontier, ALIGNATT, decide(draft, frontier, ALIGNATT))[0]
    assert token["accessible"] is None
    assert token["unit"] is None
    assert token["reason"] == reasons.NONFINITE


pieces = st.lists(
    st.sampled_from(
        [
            " Haus",
            " in",
            "schaft",
            ".",
            ",",
            " 日本",
            "語",
            "。",
            " e\u0301",
            "\u0301",
            " 👩",
            "\u200d👩",
            " a b",
        ]
    ),
    max_size=12,
)
policies = st.builds(
    Policy,
    name=st.sampled_from(["alignatt", "hold_n", "local_agreement", "wait_k"]),
    soft_edge=st.floats(0, 1),
    theta=st.floats(0, 1),
    border_margin=st.integers(0, 3),
    heard_margin=st.none() | st.integers(0, 3),
    agreement=st.sampled_from(["off", "beyond", "always"]),
    min_accessible=st.floats(0, 0.5),
    max_prompt=st.floats(0.2, 1),
    hold_n=st.integers(0, 4),
    wait_k=st.integers(0, 4),
    hold_back=st.integers(0, 3),
    min_emit=st.integers(0, 3),
)


@given(pieces, policies, st.sampled_from(["stop", "length"]), st.data())
def test_monotone_in_the_frontier_and_never_inside_a_cluster(
    draft_pieces: list[str], policy: Policy, finish: str, data: st.DataObject
) -> None:
    units = 5
    mass = st.floats(0, 0.125, width=32)
    rows = [data.draw(st.lists(mass, min_size=units, max_size=units)) for _ in draft_pieces]
    draft = make_draft(draft_pieces, rows=rows, units=units, finish=finish)
    previous = data.draw(st.none() | st.just(draft.text) | st.text(max_size=8))
    before = -1
    for committed in range(units + 1):
        decision = decide(draft, Frontier(committed, units), policy, previous_text=previous)
        assert decision.released >= before
        assert len(decision.verdicts) == len(draft.token_ids)
        before = decision.released
        rest = b"".join(draft.pieces[decision.released :]).decode()
        if decision.released:
            assert not rest.startswith(("\u0301", "\u200d"))
    assert decide(draft, Frontier(units, units, final=True), policy).released >= before


@given(policies, st.permutations(range(6)), st.data())
def test_one_decider_says_at_every_frontier_what_a_new_one_says(
    policy: Policy, order: list[int], data: st.DataObject
) -> None:
    mass = st.floats(0, 0.125, width=32) | st.just(float("nan"))
    rows = [data.draw(st.lists(mass, min_size=5, max_size=5)) for _ in WORDS]
    draft = make_draft(WORDS, rows=rows, units=5, missing=data.draw(st.lists(st.integers(0, 4), max_size=2)))
    previous = data.draw(st.none() | st.just(draft.text))
    decider = Decider(draft, policy, previous_text=previous, prefill_words=1)
    for committed in order:
        frontier = Frontier(committed, 5, final=committed == 5)
        again = decide(draft, frontier, policy, previous_text=previous, prefill_words=1)
        assert decider.decide(frontier) == again


@given(
    st.lists(st.lists(st.floats(0, 0.25, width=32), min_size=4, max_size=4), min_size=5, max_size=5),
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 0.5),
    st.integers(0, 4),
)
def test_the_gates_are_those_of_the_formula(
    rows: list[list[float]], soft_edge: float, theta: float, minimum: float, committed: int
) -> None:
    draft = make_draft(WORDS, rows=rows)
    policy = Policy(soft_edge=soft_edge, theta=theta, min_accessible=minimum)
    verdicts = decide(draft, Frontier(committed, 4), policy).verdicts
    for row, verdict in zip(rows, verdicts, strict=True):
        before, behind = sum(row[:committed]), sum(row[committed:])
        edges = (behind - soft_edge, behind - theta * (before + behind), before - minimum)
        if min(map(abs, edges)) < 1e-9:
            continue  # on the edge the last bit decides
        beyond = behind >= soft_edge and behind > theta * (before + behind)
        assert verdict == (reasons.SOURCE_FRONTIER if beyond else reasons.WEAK if before < minimum else "")
