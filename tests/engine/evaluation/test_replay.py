"""Replays on a translator without a model: a log like that of a real session, whose stable text only grows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.alignatt.policy import COMMIT_FAST_PATH, Policy
from engine.evaluation.recognition import Timing
from engine.evaluation.replayer import Replay, ReplayError, write_log
from engine.evaluation.scores import load_log, score
from engine.presets import load_preset
from engine.schemas import CaptionLine, EndLine, LogLine, SessionLine, log_line_to_json, validate_log
from tests.engine.mt.scripted import ScriptedTranslator

LINES = [["We", "go", "home", "now."], ["It", "is", "late."]]


def ticks(step_s: float) -> Iterator[float]:
    return (at * step_s for at in count())


def replay(
    lines: list[list[str]],
    policy: Policy | None = None,
    timing: Timing | None = None,
    *,
    trace: bool = False,
    step_s: float = 0.0,
) -> list[LogLine]:
    """`step_s`: how far the clock moves each time it is read, so each call takes that long."""
    preset = load_preset("laptop").model_copy(update={"policy": policy or Policy()})
    readings = ticks(step_s)
    driver = Replay(
        ScriptedTranslator(),
        preset,
        "en",
        "de",
        timing or Timing(0.25, 0.5),
        60.0,
        trace=trace,
        clock=lambda: next(readings),
    )
    return driver.run(lines, lambda _caption: None)


def captions(log: list[LogLine]) -> list[CaptionLine]:
    return [line for line in log if isinstance(line, CaptionLine)]


def test_a_replay_is_a_valid_session_log(tmp_path: Path) -> None:
    log = replay(LINES)
    write_log(tmp_path / "log", log)
    read = load_log(tmp_path / "log")
    assert [utterance.text for utterance in read.utterances] == ["WE GO HOME NOW", "IT IS LATE"]
    assert read.end is not None
    assert read.end.audio_s == pytest.approx(4 + 0.5 + 3)
    assert isinstance(log[0], SessionLine)
    assert log[0].info["replay"] == {"speech_rate": 60.0, "delay_s": 0.25, "commit_s": 0.5, "step_s": 0.0}


def test_words_are_held_first_and_released_when_they_are_committed() -> None:
    lines = [["We", "go", "home", "now."]]
    shown = [(line.clock_s, line.stable, line.held, line.reason) for line in captions(replay(lines))]
    assert shown[:4] == [
        (1.25, "", "WE", "alignatt:source_frontier"),
        (1.75, "WE", "", COMMIT_FAST_PATH),
        (2.25, "WE", " GO", "alignatt:source_frontier"),
        (2.75, "WE GO", "", COMMIT_FAST_PATH),
    ]


def test_latency_of_a_replay_is_that_of_its_timing(tmp_path: Path) -> None:
    write_log(tmp_path / "log", replay([["We", "go", "home", "now."]]))
    latency = score([load_log(tmp_path / "log")], ["We go home now"]).latency
    # word i ends at i s and is released 0.75 s later; the fourth is past the end of speech, where counting stops
    assert latency.laal_cu_s == pytest.approx((1.75 - 0 + 2.75 - 1 + 3.75 - 2 + 4.75 - 3) / 4)


def test_computation_delays_what_is_emitted_and_piles_up() -> None:
    log = captions(replay([["We", "go"]], timing=Timing(0.0, 0.0), step_s=2.0))
    # each call takes 2 s: the first begins at 1 s, the second must wait for it
    assert [(line.clock_s, line.emitted_s) for line in log] == [(1.0, 3.0), (2.0, 5.0)]


def test_trace_is_in_the_log() -> None:
    assert all(line.tokens is None for line in captions(replay(LINES)))
    first = captions(replay(LINES, trace=True))[0]
    assert first.tokens is not None
    assert (first.tokens[0].text, first.tokens[0].unit, first.tokens[0].released) == (" WE", 0, False)


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="cannot be written"):
        write_log(tmp_path / "absent" / "log", replay(LINES))


POLICIES = st.builds(
    Policy,
    name=st.sampled_from(["alignatt", "hold_n", "local_agreement", "wait_k"]),
    theta=st.sampled_from([0.0, 0.5, 1.0]),
    border_margin=st.integers(0, 3),
    hold_n=st.integers(0, 3),
    wait_k=st.integers(0, 3),
)
WORDS = st.lists(st.sampled_from(["we", "go", "home", "now,", "late."]), min_size=1, max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=3), POLICIES, st.sampled_from([0.0, 1.0, 2.0]))
def test_no_replay_ever_withdraws_stable_text(lines: list[list[str]], policy: Policy, step_s: float) -> None:
    log = replay(lines, policy, Timing(0.3, 1.0, step_s))
    assert len(list(validate_log((log_line_to_json(line) for line in log), "replay"))) == len(log)
    assert isinstance(log[-1], EndLine)
    last = {line.utterance_id: line for line in captions(log)}
    assert [line.final for line in last.values()] == [True] * len(lines)
    assert [len(line.stable.split()) for line in last.values()] == [len(line) for line in lines]
