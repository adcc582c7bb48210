from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest

from app.controller import SessionEnded
from app.session_log import LogProblem, SessionLog
from engine.messages import Activity, Error, Health, Stopped
from engine.schemas import CaptionLine, EndLine, ErrorLine, SessionLine, read_log
from tests.app.captions import BEGAN, ENDED, INFO, caption

TOKEN = {
    "text": "Guten",
    "released": True,
    "unit": 0,
    "accessible": 0.5,
    "inaccessible": math.nan,
    "prompt": 0.3,
    "suffix": 0.2,
    "reason": "",
}


def test_a_session_becomes_a_valid_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = SessionLog(path)
    log.event(Health("translator", "ok", "before any session"))
    for event in (
        BEGAN,
        caption(0, "", "Good", held="Guten", emitted_s=1.0),
        Activity(1.0, 1.0, True, 0.2),
        Health("translator", "fallback_policy", "Rows are missing.", {"rows_missing": 3}),
        caption(0, "Guten", "Good", covered_s=0.7, emitted_s=2.25, tokens=(TOKEN,), stages={"draft_ms": math.inf}),
        Error("translation_failed", "A piece failed."),
        Stopped(BEGAN.session_id, 12.0, 13.5),
        ENDED,
    ):
        log.event(event)
    lines = read_log(path)
    assert [line.type for line in lines] == ["session", "caption", "health", "caption", "error", "end"]
    first, second = (line for line in lines if isinstance(line, CaptionLine))
    session = lines[0]
    assert isinstance(session, SessionLine)
    assert (session.model, session.capture_mode, session.info) == (INFO["model"], "eager", {"seam": "cb_eval"})
    assert (first.lag_s, second.lag_s) == (None, 1.55)
    assert first.tokens is None
    assert second.tokens
    assert second.tokens[0].inaccessible is None
    assert isinstance(lines[-1], EndLine)
    assert (lines[-1].audio_s, lines[-1].wall_s) == (12.0, 13.5)


@pytest.mark.parametrize(("stopped", "code"), [(True, "source_lost"), (False, "engine_died")])
def test_an_end_with_a_reason_says_it(stopped: bool, code: str, tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "log.jsonl")
    log.event(BEGAN)
    if stopped:
        log.event(Stopped(BEGAN.session_id, 1.0, 1.0))
    log.event(SessionEnded(BEGAN.session_id, 1.0, 1.0, "It is gone."))
    error = read_log(log.path)[1]
    assert isinstance(error, ErrorLine)
    assert (error.code, error.message, error.fatal) == (code, "It is gone.", not stopped)


def test_later_sessions_get_files_of_their_own(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "my.log.jsonl")
    for number in range(3):
        log.event(replace(BEGAN, source_name=str(number)))
        log.event(ENDED)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.log-2.jsonl", "my.log-3.jsonl", "my.log.jsonl"]
    assert all(len(read_log(path)) == 2 for path in tmp_path.iterdir())


def test_an_engine_without_a_description_is_logged_too(tmp_path: Path) -> None:
    log = SessionLog(tmp_path / "log.jsonl")
    log.event(replace(BEGAN, info={}))
    log.close()
    assert len(read_log(log.path)) == 1


def test_a_full_disk_is_said() -> None:
    log = SessionLog(Path("/dev/full"))
    with pytest.raises(LogProblem, match="no space left"):
        log.event(BEGAN)
    with pytest.raises(LogProblem, match="kept in memory"):
        log.event(caption(0, "Guten", "Good"))
    with pytest.raises(LogProblem, match="incomplete"):
        log.close()
    log.close()
