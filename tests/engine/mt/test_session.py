"""The translation session: stable text grows only, commits release without a model call, finals complete."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.alignatt import policy as reasons
from engine.alignatt.draft import Draft
from engine.alignatt.policy import Policy
from engine.asr.contract import Word
from engine.mt import session as session_module
from engine.mt.contract import Cancel, CaptionState, Source, TranslationError
from engine.mt.session import LocalTranslationSession, final_budget, partial_budget
from tests.engine.mt.scripted import ScriptedTranslator


def words(text: str) -> list[Word]:
    return [Word(word, at * 0.4, at * 0.4 + 0.3) for at, word in enumerate(text.split())]


def make(translator: ScriptedTranslator | None = None, **options: object) -> LocalTranslationSession:
    policy = options.pop("policy", Policy())
    return LocalTranslationSession(translator or ScriptedTranslator(), policy, "s", "en", "de", **options)  # type: ignore[arg-type]


def update(
    session: LocalTranslationSession,
    committed: str,
    tail: str = "",
    final: bool = False,
    utterance_id: int = 0,
) -> CaptionState:
    return session.update(utterance_id, words(committed), words(tail), 0.0, final, lambda: False)


def test_committed_words_become_stable_and_the_rest_is_held() -> None:
    state = update(make(), "we go", "home today")
    assert (state.stable, state.held, state.covered_source_units) == ("WE GO", " HOME TODAY", 2)
    assert state.reason == reasons.SOURCE_FRONTIER
    assert state.engine_call


def test_release_on_commit_needs_no_engine_call() -> None:
    translator = ScriptedTranslator()
    session = make(translator)
    update(session, "we go", "home today")
    state = update(session, "we go home", "today")
    assert (state.stable, state.held) == ("WE GO HOME", " TODAY")
    assert (state.reason, state.engine_call, translator.calls) == (reasons.COMMIT_FAST_PATH, False, 1)
    assert update(session, "we go home", "today").reason == reasons.PREFIX_UNCHANGED
    state = update(session, "we go home today", final=True)
    assert (state.stable, state.held, state.final, translator.calls) == ("WE GO HOME TODAY", "", True, 1)


def test_a_draft_that_ran_out_of_budget_is_continued_once_it_is_used_up() -> None:
    translator = ScriptedTranslator()
    session = make(translator)
    text = " ".join(f"w{at}" for at in range(30))
    first = update(session, text)
    assert len(first.stable.split()) == partial_budget(30) - 1  # its last word may go on
    second = update(session, text)
    assert translator.calls == 2
    assert second.stable.startswith(first.stable)
    assert len(second.stable.split()) == 30
    assert update(session, text, final=True).stable.split() == text.upper().split()


def test_a_final_draft_has_the_larger_budget() -> None:
    assert (partial_budget(2), partial_budget(100)) == (10, 16)
    assert (final_budget(1), final_budget(20), final_budget(100)) == (32, 84, 160)


def test_a_new_utterance_starts_afresh() -> None:
    session = make()
    update(session, "we go home", final=True)
    state = update(session, "it rains", "now", utterance_id=1)
    assert state.stable == "IT RAINS"


def test_nothing_said_is_nothing_shown() -> None:
    state = update(make(), "", final=True)
    assert (state.stable, state.held, state.reason) == ("", "", reasons.EMPTY_SOURCE)


def test_a_cancelled_draft_changes_nothing() -> None:
    session = make()
    before = update(session, "we go", "home")
    state = session.update(0, words("we go home"), words("now"), 0.0, False, lambda: True)
    assert state.reason == reasons.SUPERSEDED
    assert (state.stable, state.held) == (before.stable, before.held)


def test_a_failed_draft_raises_and_the_session_goes_on() -> None:
    translator = ScriptedTranslator()
    session = make(translator)
    before = update(session, "we go")
    translator.fail = True
    with pytest.raises(TranslationError):
        update(session, "we go home")
    translator.fail = False
    assert update(session, "we go home").stable.startswith(before.stable)


def test_a_rewritten_source_keeps_the_released_prefix_and_says_so() -> None:
    session = make(policy=Policy(name="hold_n", hold_n=0))
    before = update(session, "", "we go home")
    state = update(session, "", "they went away now")
    assert state.stable.startswith(before.stable)
    assert state.reason == reasons.SOURCE_REWRITTEN
    assert update(session, "", "they went away now at last").reason != reasons.SOURCE_REWRITTEN


def test_local_agreement_needs_two_drafts() -> None:
    session = make(policy=Policy(name="local_agreement"))
    assert update(session, "", "we go").stable == ""
    assert update(session, "", "we go home").stable == "WE GO"
    assert update(session, "", "we go far away").stable == "WE GO"


def test_wait_k_counts_what_was_released_also_without_spaces() -> None:
    class Chinese(ScriptedTranslator):
        def _make(self, words: list[str], prefill: Sequence[int], source: Source, first: int, finish: str) -> Draft:
            return super()._make(list("天地人你我他山水火")[first : first + len(words)], prefill, source, first, finish)

    for translator in (Chinese(), ScriptedTranslator()):
        session = LocalTranslationSession(translator, Policy(name="wait_k", wait_k=2), "one", "en", "zh")
        for count in range(1, 8):
            state = update(session, " ".join(f"w{at}" for at in range(count)), "tail")
            assert (state.covered_source_units or 0) == max(0, count - 2)


def test_unhealthy_capture_hands_over_to_the_fallback_policy(caplog: pytest.LogCaptureFixture) -> None:
    session_module._reported.clear()
    said: list[str] = []
    session = make(ScriptedTranslator(nan_rate=3), on_unhealthy=said.append)
    with caplog.at_level(logging.ERROR):
        for count in range(1, 24):
            update(session, " ".join(f"w{at}" for at in range(count)), "tail")
    assert session.health.fallback == "local_agreement"
    assert len(said) == 1
    assert "local_agreement" in said[0]
    assert sum(reasons.NONFINITE in record.message for record in caplog.records) == 1


def test_a_context_that_does_not_fit_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    class Small(ScriptedTranslator):
        """Has room for so many words of source and context together."""

        def draft(
            self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
        ) -> Draft:
            left_out = max(0, len(source.units) + len(source.context.split()) - 5)
            return replace(
                super().draft(session_id, source, prefill_ids, max_new_tokens, cancel), context_left_out=left_out
            )

    said: list[str] = []
    session = make(Small(), context="a talk about dogs", on_context_cut=said.append)
    update(session, "we")
    assert said == []
    for utterance_id in range(3):
        update(session, "we all go home", utterance_id=utterance_id)
    assert [sentence.split(": ")[1].split(";")[0] for sentence in said] == ["3 of its 4 words are left out"]
    assert [record.getMessage() for record in caplog.records] == said


def test_capture_that_fails_late_in_a_long_session_is_noticed_as_soon_as_early() -> None:
    translator = ScriptedTranslator()
    session = make(translator)
    for at in range(2000):
        update(session, f"w{at} w w", final=True, utterance_id=at)
    assert session.health.rows > 5000
    assert session.health.bad_rate == 0
    translator.nan_rate = 10
    for at in range(2000, 2020):
        update(session, f"w{at} w w", final=True, utterance_id=at)
    assert session.health.fallback == "local_agreement"
    assert session.health.nonfinite == 60


def test_history_is_kept_to_its_limit() -> None:
    session = make(max_history=2)
    for at in range(4):
        update(session, f"sentence {at}", final=True, utterance_id=at)
    assert session._history == [("sentence 2", "SENTENCE 2"), ("sentence 3", "SENTENCE 3")]


def test_a_session_continues_where_another_left_off() -> None:
    session = make(max_history=1, history=[("a", "A"), ("b", "B")], accepted_prefix="Gestern")
    assert session._history == [("b", "B")]
    state = update(session, "yesterday we go", "home")
    assert (state.stable, state.held) == ("Gestern WE GO", " HOME")
    assert update(session, "yesterday we go home", final=True).stable == "Gestern WE GO HOME"
    assert update(session, "it rains", utterance_id=1).stable == "IT RAINS"


@pytest.mark.parametrize(("accepted", "shown"), [("Gestern ", "Gestern WE"), ("  ", "  YESTERDAY WE")])
def test_an_accepted_prefix_stays_to_the_letter(accepted: str, shown: str) -> None:
    assert update(make(accepted_prefix=accepted), "yesterday we", "go").stable == shown


def test_needs_engine_foretells_engine_calls() -> None:
    session = make()
    for committed, tail, final in (("", "", False), ("a", "b c", False), ("a b", "c", False), ("a b c", "", True)):
        foretold = session.needs_engine(0, words(committed), words(tail), final)
        assert update(session, committed, tail, final).engine_call == foretold


def test_an_abandoned_session_ends_even_its_finals() -> None:
    session = make()
    session.abandon()
    assert update(session, "we go home", final=True).reason == reasons.SUPERSEDED


def test_without_reuse_every_update_drafts() -> None:
    translator = ScriptedTranslator()
    session = make(translator, reuse=False, partial_limit=1)
    update(session, "we go")
    update(session, "we go")
    assert translator.calls == 2
    assert (session.released_tokens, session.held_tokens) == (0, 1)


def test_the_trace_is_made_only_on_request() -> None:
    assert update(make(), "we go").tokens == ()
    assert [token["text"] for token in update(make(trace=True), "we go", "home").tokens] == [
        " WE",
        " GO",
        " HOME",
    ]


spoken = st.lists(st.sampled_from(["a", "b", "c,", "d."]), max_size=7).map(" ".join)


@given(
    st.lists(st.tuples(spoken, spoken, st.integers(0, 2), st.booleans()), max_size=12),
    st.sampled_from(["alignatt", "hold_n", "local_agreement", "wait_k"]),
    st.integers(0, 4),
)
def test_stable_text_is_append_only_under_any_updates(
    updates: list[tuple[str, str, int, bool]], name: str, nan_rate: int
) -> None:
    session = make(ScriptedTranslator(nan_rate=nan_rate), policy=Policy(name=name))  # type: ignore[arg-type]
    shown: dict[int, str] = {}
    utterance_id = 0
    for committed, tail, step, final in updates:
        if step == 2:
            utterance_id += 1
        state = update(session, committed, tail, final, utterance_id)
        assert state.stable.startswith(shown.get(utterance_id, ""))
        shown[utterance_id] = state.stable
        if final:
            assert state.held == ""
            utterance_id += 1
