"""What a session adds for the protocol: overrides, cumulative text over segments, finals that come again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from engine.alignatt.policy import Policy
from engine.asr.contract import Utterance, Word
from engine.scheduler import Update
from engine.server.protocol import Answer, Init, Overrides
from engine.server.translation import Terms, Unfinished, WireTranslation
from tests.engine.mt.scripted import ScriptedTranslator


def make(translator: ScriptedTranslator | None = None, terms: Terms | None = None, **init: Any) -> WireTranslation:
    message = Init(type="init", protocol_version=1, source_lang="en", target_lang="de", **init)
    return WireTranslation(translator or ScriptedTranslator(), "s", message, terms or Terms(Policy()))


def wire(committed: str, tail: str = "", final: bool = False, utterance_id: int = 0, clock_s: float = 1e3) -> Update:
    words = [Word(word, at * 0.4, at * 0.4 + 0.3) for at, word in enumerate(f"{committed} {tail}".split())]
    count = len(committed.split())
    return Update(Utterance(utterance_id, tuple(words[:count]), tuple(words[count:]), final), clock_s, 0.0, 1)


def advance(translation: WireTranslation, update: Update) -> Answer:
    for _ in range(100):
        result = translation.advance(update, lambda: False)
        if isinstance(result, Answer):
            return result
        assert result is Unfinished.MORE
    raise AssertionError("never answered")


def ask(translation: WireTranslation, *args: Any, **fields: Any) -> Answer:
    return advance(translation, wire(*args, **fields))


def test_hold_back_and_min_emit() -> None:
    held = make(overrides=Overrides(translation_alignatt_hold_back_target_units=2))
    assert ask(held, "a b c", "d").committed_text == "A"
    assert ask(held, "a b c d", "e").committed_text == "A B"
    assert ask(held, "a b c d e", final=True).committed_text == "A B C D E"
    emitted = make(overrides=Overrides(translation_alignatt_min_emit_target_units=2))
    assert ask(emitted, "a", "b").committed_text == ""
    assert ask(emitted, "a b", "c").committed_text == "A B"


def test_border_margin_and_inaccessible_ms() -> None:
    margin = make(overrides=Overrides(translation_alignatt_border_margin=1))
    assert ask(margin, "a b c").committed_text == "A B"
    shortly = make(overrides=Overrides(translation_alignatt_inaccessible_ms=600.0))
    assert ask(shortly, "a b c", clock_s=1.2).committed_text == "A"
    assert ask(shortly, "a b c", clock_s=1.9).committed_text == "A B C"


def test_only_what_stood_before_counts_with_lcp_stability() -> None:
    stable = make(overrides=Overrides(translation_alignatt_source_lcp_stability=True))
    assert ask(stable, "a b").committed_text == ""
    assert ask(stable, "a b").committed_text == "A B"
    assert ask(stable, "a b c d").committed_text == "A B"


def test_the_fast_path_can_be_turned_off() -> None:
    translator = ScriptedTranslator()
    translation = make(translator, overrides=Overrides(translation_alignatt_commit_fast_path=False))
    ask(translation, "a", "b")
    assert translation.needs_engine(wire("a b"))
    assert ask(translation, "a b").engine_calls == 1
    assert translator.calls == 2


def test_limits_of_drafts_and_history() -> None:
    translation = make(
        overrides=Overrides(partial_max_new_tokens=2, max_history_utterances=1), history=[["x", "X"], ["y", "Y"]]
    )
    assert ask(translation, "a b c d").committed_text == "A"  # two tokens, the last one may go on
    assert translation.session._history == [("y", "Y")]
    ask(translation, "a b", final=True)
    assert translation.session._history == [("a b", "A B")]


def test_overrides_that_are_not_given_leave_the_preset_alone() -> None:
    terms = Terms(Policy(border_margin=2), max_history=3)
    assert terms.overridden(Overrides()) == terms
    assert terms.overridden(None) == terms


def test_segments_are_cut_at_clauses_and_join_to_one_text() -> None:
    translation = make(terms=Terms(Policy(), max_words=8))
    text = "a b c d e, f g h i j k l m n o p."
    answer = ask(translation, text, final=True)
    assert answer.committed_text == answer.committed_delta == "A B C D E F G H I J K L M N O P"
    assert (answer.engine_calls, answer.covered_source_units) == (3, 16)
    assert not answer.forced_final


def test_a_segment_never_cuts_what_is_already_covered() -> None:
    translation = make(terms=Terms(Policy(), max_words=8))
    shown = ask(translation, "a b, c d e f g h", "i").committed_text
    assert shown.split()[-1] == "H"
    answer = ask(translation, "a b, c d e f g h i j k l m", final=True)
    assert answer.committed_text == "A B C D E F G H I J K L M"


def test_letters_count_too() -> None:
    translation = make(terms=Terms(Policy(), max_words=8))
    words = [letter * 60 for letter in "abcd"]
    answer = ask(translation, " ".join(words))
    assert answer.forced_final
    assert answer.committed_text == " ".join(words).upper()


def test_a_long_tail_is_read_as_far_as_an_utterance_may_go() -> None:
    translation = make(terms=Terms(Policy(), max_words=8))
    answer = ask(translation, "a", " ".join("xyz") * 100)
    assert answer.committed_text == "A"
    assert len(answer.buffer_text.split()) == 7


def test_held_text_behind_closed_segments_brings_its_space() -> None:
    translation = make(terms=Terms(Policy(), max_words=4))
    ask(translation, "a b c d e")
    late = ask(translation, "a b c d e f", final=True)
    assert late.committed_delta == " F"


def test_text_that_would_change_is_counted_and_not_sent() -> None:
    translation = make()
    ask(translation, "a b")
    translation._sent = "something else"
    answer = ask(translation, "a b c")
    assert (answer.committed_text, answer.committed_delta) == ("something else", "")
    assert translation.violations == 1


spoken = st.lists(st.sampled_from(["a", "b", "c,", "d."]), max_size=12).map(" ".join)


@given(
    st.lists(st.tuples(spoken, spoken, st.booleans(), st.booleans()), max_size=10),
    st.builds(
        Overrides,
        translation_alignatt_hold_back_target_units=st.none() | st.integers(0, 3),
        translation_alignatt_min_emit_target_units=st.none() | st.integers(0, 3),
        translation_alignatt_border_margin=st.none() | st.integers(0, 3),
        translation_alignatt_source_lcp_stability=st.none() | st.booleans(),
        translation_alignatt_commit_fast_path=st.none() | st.booleans(),
        partial_max_new_tokens=st.none() | st.integers(1, 20),
    ),
    st.sampled_from(["", "Schon da", "Schon da "]),
    st.integers(1, 6),
)
def test_deltas_add_up_under_any_updates(
    updates: list[tuple[str, str, bool, bool]], overrides: Overrides, accepted: str, max_words: int
) -> None:
    translation = make(terms=Terms(Policy(), max_words=max_words), overrides=overrides, accepted_target_prefix=accepted)
    utterance_id, shown = 0, accepted
    for committed, tail, final, repeated in updates:
        update = wire(committed, tail if not final else "", final, utterance_id)
        answer = advance(translation, update)
        assert shown + answer.committed_delta == answer.committed_text
        shown = answer.committed_text
        if answer.final and repeated:
            again = advance(translation, wire(committed, "", True, utterance_id))
            assert (again.committed_text, again.committed_delta) == (shown, "")
        if answer.final:
            utterance_id, shown = utterance_id + 1, ""
    assert translation.violations == 0
