"""The command `replay`: output, log, and what is refused in one sentence."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from engine.evaluation import replay
from engine.evaluation.scores import load_log
from tests.engine.mt.scripted import ScriptedTranslator


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "create_translator", lambda *_args: ScriptedTranslator())


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    parser = argparse.ArgumentParser()
    replay.add_arguments(parser)
    status = replay.run(parser.parse_args(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def text_file(tmp_path: Path, text: str = "We go home.\n\nIt is late.\n") -> str:
    path = tmp_path / "talk.txt"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_text_is_translated_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys, text_file(tmp_path), "--to", "de", "--log", str(tmp_path / "log"))
    assert (status, err) == (0, "")
    assert out.splitlines()[:2] == ["WE GO HOME", "IT IS LATE"]
    assert "2 utterances" in out
    assert len(load_log(tmp_path / "log").utterances) == 2


def test_standard_input_policy_and_trace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("We go home."))
    words = ["-", "--to", "de", "--policy", "hold_n", "--set", "policy.hold_n=1", "--trace", "--step-s", "1"]
    status, out, _ = run(capsys, *words, "--log", str(tmp_path / "log"))
    assert status == 0
    assert "policy:hold_n" in out
    assert "0:We" in out
    assert load_log(tmp_path / "log").session.policy["hold_n"] == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--to", "xx"], "does not translate en-xx"),
        (["--to", "de", "--log", "/"], "The session log / cannot be written: it is a folder."),
        (["--to", "de", "--log", "/none/log.jsonl"], "/none/log.jsonl cannot be written: its folder does not exist."),
        (["--to", "de", "--preset", "absent"], "no preset 'absent'"),
        (["--to", "de", "--set", "policy.theta"], "write KEY=VALUE"),
        (["--to", "de", "--set", "policy.theta=7"], "policy"),
        (["--to", "de", "--policy", "guess"], "policy"),
        (["--to", "de", "--speech-rate", "0"], "speech rate of 0"),
        (["--to", "de", "--commit-s", "-1"], "--commit-s is -1"),
        (["--to", "de", "--log", "/nonexistent/log"], "cannot be written"),
    ],
)
def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], complaint: str) -> None:
    status, _, err = run(capsys, text_file(tmp_path), *words)
    assert status == 2
    assert complaint in err
    assert err.count("\n") == 1


def test_empty_and_missing_texts_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, complaint in ((text_file(tmp_path, "\n \n"), "is empty"), (str(tmp_path / "absent"), "cannot be read")):
        status, _, err = run(capsys, path, "--to", "de")
        assert status == 2
        assert complaint in err
