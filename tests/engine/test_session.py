"""A session of one speaker: order, nothing lost, one error for one fault, and how far it is behind."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.messages import Activity, Audio, Caption, Flush, Stopped
from engine.mt.contract import TranslationError
from engine.session import AppendOnly, SessionTimes
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.sessions import BLOCK_S, Run, ScriptedRecogniser, ScriptedTranslation, append_only

TEXT = "we go home now. then we rest a little. and so we sleep"
STABLE = ["WE GO HOME NOW", "THEN WE REST A LITTLE", "AND SO WE SLEEP"]
BLOCKS = 13  # enough sound for all words


# ------------------------------------------------------------ order


@pytest.mark.parametrize("live", [True, False])
def test_from_voice_to_finals(live: bool) -> None:
    run = Run(ScriptedRecogniser(TEXT), live=live)
    run.speak(BLOCKS)
    *_, activity, stopped = run.stop()
    assert [caption.stable for caption in run.finals] == STABLE
    assert [caption.source_stable for caption in run.finals] == TEXT.replace(". ", ".|").split("|")
    assert append_only(run.captions)
    assert run.errors == []
    assert isinstance(activity, Activity)
    assert (activity.speech, activity.lag_s) == (False, 0.0)
    assert stopped == Stopped("one", pytest.approx(BLOCKS * BLOCK_S), stopped.wall_s)  # type: ignore[attr-defined]
    assert run.events.count(stopped) == 1


def test_who_has_heard_the_end_may_begin_again() -> None:
    recogniser = ScriptedRecogniser(TEXT)
    for _ in range(3):
        recogniser.reset()
        run = Run(recogniser)
        run.speak(3)
        run.stop()
        assert run.running_at_the_end is False


def test_a_file_played_fast_is_translated_step_by_step() -> None:
    recogniser, translator = ScriptedRecogniser(TEXT), ScriptedTranslator()
    run = Run(recogniser, translator=translator, live=False)
    run.speak(BLOCKS)
    run.stop()
    assert recogniser.coalesce is False
    assert recogniser.chunks == pytest.approx([BLOCK_S] * BLOCKS)
    assert len(run.captions) == BLOCKS + 3  # every block updates the open utterance; three finals
    held = [caption for caption in run.captions if caption.held]
    assert len(held) >= BLOCKS // 2


def test_a_file_that_waits_for_the_engine_always_hears_how_far_it_is() -> None:
    run = Run(ScriptedRecogniser(TEXT), live=False)

    def heard_s() -> float:
        return max((event.processed_s for event in run.events if isinstance(event, Activity)), default=0.0)

    for block in range(4):  # less than the distance of two heartbeats in all
        before_s = heard_s()
        run.session.push(Audio(np.zeros(512, np.float32).tobytes(), 16_000, 1, block * 0.032))
        run.until(lambda before_s=before_s: heard_s() > before_s)  # type: ignore[misc]
    run.stop()


def test_a_live_session_that_is_behind_skips_what_is_old_and_no_final(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.session.ACTIVITY_EVERY_S", 0.0)
    go = threading.Event()

    def slow(number: int, final: bool) -> str:
        go.wait(60)
        return "final" if final else ""

    recogniser = ScriptedRecogniser(TEXT)
    run = Run(recogniser, ScriptedTranslation(slow))
    assert recogniser.coalesce is True
    run.speak(BLOCKS)
    run.until(lambda: any(isinstance(e, Activity) and e.processed_s > (BLOCKS - 1) * BLOCK_S for e in run.events))
    assert len(run.captions) <= 1
    go.set()
    run.stop()
    assert len(run.captions) < BLOCKS
    assert [caption.utterance_id for caption in run.finals] == [0, 1, 2]
    assert append_only(run.captions)


def test_stop_in_mid_word_keeps_the_last_words() -> None:
    run = Run(ScriptedRecogniser("we go home now"))
    run.speak(5)
    run.stop()
    assert [caption.stable for caption in run.finals] == ["WE GO HOME NOW"]


def test_nothing_said_ends_with_nothing() -> None:
    run = Run(ScriptedRecogniser(TEXT))
    run.speak(4, value=0.0)
    *_, stopped = run.stop()
    assert run.captions == []
    assert isinstance(stopped, Stopped)
    assert Run(ScriptedRecogniser(TEXT)).stop()[-1] == Stopped("one", 0.0, pytest.approx(0, abs=60))


def test_a_flush_closes_the_open_utterance() -> None:
    run = Run(ScriptedRecogniser("we go home now and rest"))
    run.speak(4)
    run.session.push(Flush())
    run.until(lambda: len(run.finals) == 1)
    assert run.finals[0].stable == "WE GO HOME NOW"
    run.speak(2)
    run.stop()
    assert [caption.stable for caption in run.finals] == ["WE GO HOME NOW", "AND REST"]


def test_captions_carry_their_times() -> None:
    run = Run(ScriptedRecogniser("we go home. then rest"), live=False)
    run.speak(7)
    run.stop()
    first, second = run.finals
    assert (first.start_s, first.end_s, first.audio_s, first.covered_s) == (0.0, 1.5, 1.5, 1.5)
    assert (second.start_s, second.end_s) == (1.5, 2.5)
    assert all(caption.emitted_s >= caption.audio_s for caption in run.captions)
    assert all({"wait_ms"} <= caption.stages.keys() for caption in run.captions)
    clocks = [caption.clock_s for caption in run.captions if caption.clock_s is not None]
    assert clocks == sorted(clocks)
    assert run.captions[0].covered_s is None
    assert run.captions[0].source_tail == "we"


# ------------------------------------------------------------ faults


def test_a_block_of_sound_that_is_none_costs_only_itself() -> None:
    run = Run(ScriptedRecogniser(TEXT))
    run.speak(2)
    run.session.push(Audio(bytes(7), 16000, 1, 2 * BLOCK_S))
    run.session.push(Audio(bytes(8), 0, 0, 2 * BLOCK_S))
    run.session.push(Audio(bytes(8), 16000, 1, float("nan")))
    run.speak(BLOCKS - 2)
    run.stop()
    assert [code for code, _ in run.errors] == ["audio_failed"] * 3
    assert [caption.stable for caption in run.finals] == STABLE
    assert all(caption.emitted_s < 1e6 for caption in run.captions)


@pytest.mark.parametrize("live", [True, False])
def test_a_recogniser_that_fails_once_is_one_error(live: bool, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(ScriptedRecogniser(TEXT, fail_at=[1]), live=live)
    run.speak(1)
    run.until(lambda: bool(run.errors))
    run.speak(BLOCKS - 1)
    run.stop()
    assert run.errors == [("asr_failed", "A moment of speech could not be recognised and was left out.")]
    assert [caption.stable for caption in run.finals] == STABLE
    assert "out of order" in caplog.text


@pytest.mark.parametrize("times", [1, 2])
def test_a_recogniser_that_fails_at_the_end_still_lets_the_session_end(times: int) -> None:
    run = Run(ScriptedRecogniser("we go home", fail_finish=times), live=False)
    run.speak(4)
    run.stop()
    assert [code for code, _ in run.errors] == ["asr_failed"] * times
    assert [caption.stable for caption in run.finals] == (["WE GO HOME"] if times == 1 else [])


def test_a_translation_that_fails_is_one_error_and_the_session_goes_on() -> None:
    def answer(number: int, final: bool) -> str:
        if number == 1:
            raise TranslationError("The model is out of order.")
        if number == 2:
            raise ZeroDivisionError
        return "yes"

    run = Run(ScriptedRecogniser("we go home now"), ScriptedTranslation(answer), live=False)
    run.speak(5)
    run.stop()
    assert [message for _, message in run.errors] == [
        "The model is out of order.",
        "A piece of the translation failed; the log has the details.",
    ]
    assert [caption.stable for caption in run.captions] == ["yes"] * len(run.captions)
    assert len(run.finals) == 1


@pytest.mark.parametrize("live", [True, False])
def test_a_final_that_fails_closes_its_utterance_with_what_was_stable(live: bool) -> None:
    def answer(number: int, final: bool) -> str:
        if final:
            raise TranslationError("The model is out of order.")
        return "wir"

    run = Run(ScriptedRecogniser("we go home. then we rest"), ScriptedTranslation(answer), live=live)
    for _ in range(9):
        run.speak(1)
    run.stop()
    assert [(caption.utterance_id, caption.reason) for caption in run.finals] == [(0, "error"), (1, "error")]
    shown = {caption.utterance_id: caption.stable for caption in run.captions if not caption.final}
    assert [caption.stable for caption in run.finals] == [shown.get(number, "") for number in (0, 1)]
    assert [caption.source_stable for caption in run.finals] == ["we go home.", "then we rest"]
    assert append_only(run.captions)


def test_text_that_would_change_is_dropped_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    texts = ["wir", "wir gehen", "sie gehen", "wir gehen heim"]
    run = Run(
        ScriptedRecogniser("we go home now and rest"),
        ScriptedTranslation(lambda number, final: "ganz anders" if final else texts[min(number, 3)]),
        live=False,
    )
    with caplog.at_level(logging.ERROR, "surtitle.session"):
        run.speak(7)
        run.stop()
    assert run.errors == [("append_only", "A translation that would have changed stable text was dropped.")] * 2
    assert [caption.stable for caption in run.captions][:3] == ["wir", "wir gehen", "wir gehen heim"]
    assert [caption.stable for caption in run.finals] == ["wir gehen heim"]  # the dropped final still closes
    assert run.session._guard.violations == 2
    assert "'sie gehen' would replace 'wir gehen'" in caplog.text


@pytest.mark.parametrize("live", [True, False])
def test_an_answer_that_is_none_costs_only_itself(live: bool) -> None:
    broken = ScriptedTranslation(lambda number, final: "sie" if final else None)  # type: ignore[return-value, arg-type]
    run = Run(ScriptedRecogniser("we go"), broken, live=live)
    run.speak(3)
    run.until(lambda: bool(run.errors))
    assert isinstance(run.stop()[-1], Stopped)
    assert {code for code, _ in run.errors} == {"translation_failed"}
    assert [caption.stable for caption in run.finals] == ["sie"]


def test_a_translation_that_cannot_be_closed_ends_all_the_same() -> None:
    class Stuck(ScriptedTranslation):
        def close(self) -> None:
            raise OSError("stuck")

    run = Run(ScriptedRecogniser("we go"), Stuck(lambda number, final: ""))
    run.speak(3)
    assert isinstance(run.stop()[-1], Stopped)
    assert [code for code, _ in run.errors] == ["translation_failed"]
    closing = ScriptedTranslation(lambda number, final: "")
    Run(ScriptedRecogniser("we go"), closing).stop()
    assert closing.closed


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["", "a", "ab", "abc", "b", None]), min_size=1, max_size=8))
def test_whatever_a_translator_says_captions_are_append_only(answers: list[str | None]) -> None:
    def answer(number: int, final: bool) -> str:
        text = answers[number % len(answers)]
        if text is None:
            raise TranslationError("The model is out of order.")
        return text

    run = Run(ScriptedRecogniser(TEXT), ScriptedTranslation(answer), live=False)
    run.speak(BLOCKS)
    run.stop()
    assert append_only(run.captions)
    assert [caption.utterance_id for caption in run.finals] == [0, 1, 2]


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a", "ab", "b"]), st.booleans()), max_size=12))
def test_the_guard_accepts_only_what_grows(updates: list[tuple[int, str, bool]]) -> None:
    guard, accepted, refused = AppendOnly(), [], 0
    for utterance_id, stable, final in updates:
        if guard.accept(utterance_id, stable, final):
            accepted.append(Caption(utterance_id, stable, "", "", "", None, final, "", 0, 0, 0, 0))
            assert guard.last(utterance_id) == ("" if final else stable)
        else:
            refused += 1
    assert append_only(accepted)
    assert guard.violations == refused


# ------------------------------------------------------------ time


def test_lag_is_the_way_from_speech_to_stable_words() -> None:
    times = SessionTimes()
    assert times.now_s() == 0.0
    assert times.lag_s() == 0.0
    times.received(5.0)
    times.received(4.0)
    times.received(float("nan"))
    assert times.audio_s == 5.0
    assert times.now_s() >= 5.0
    times.speech, times.stable_s = True, 2.0
    assert times.lag_s() == 3.0
    times.speech, times.spoken_s = False, 3.5
    assert times.lag_s() == 1.5
    times.stable_s = 9.0
    assert times.lag_s() == 0.0
    assert times.wall_s() >= 0.0


def test_lag_grows_while_nothing_is_stable_and_is_gone_after_the_finals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.session.ACTIVITY_EVERY_S", 0.0)
    run = Run(ScriptedRecogniser("we go home"))

    def heard() -> list[Activity]:
        return [event for event in run.events if isinstance(event, Activity)]

    run.speak(5)
    run.until(lambda: any(activity.speech and activity.lag_s > 0.5 for activity in heard()))
    run.speak(4, value=0.0)
    run.until(lambda: len(run.finals) == 1)
    for _ in range(100):  # the translator may still be busy with having told the final
        before = len(heard())
        run.speak(1, value=0.0)
        run.until(lambda before=before: len(heard()) > before)  # type: ignore[misc]
        if heard()[-1].lag_s == 0.0:
            break
    assert (heard()[-1].speech, heard()[-1].lag_s) == (False, 0.0)
    run.stop()


def test_a_sound_without_words_leaves_no_lag_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.session.ACTIVITY_EVERY_S", 0.0)
    run = Run(ScriptedRecogniser(""), live=False)
    run.speak(4)
    run.speak(10, value=0.0)
    run.stop()
    silent = [event for event in run.events if isinstance(event, Activity) and not event.speech]
    assert silent
    assert all(event.lag_s == 0.0 for event in silent)
    assert np.isfinite([event.audio_s for event in silent]).all()
