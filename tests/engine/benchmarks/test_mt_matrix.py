"""The matrix of combinations: what is run again, what counts as wrong, and a process that does not end."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from engine.benchmarks import child, mt, mt_matrix
from engine.benchmarks.mt_correctness import no_counts

GOOD: dict[str, Any] = {
    "at_once": {"8": {**no_counts(), "requests": 16, "shortest_prompt": 30}}, "capture_mode": "eager/passed",
    "failed": "", "environment": {}, "info": {"counts": {"preempted": 3}},
}  # fmt: skip


def arguments(path: Path, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    mt.add_arguments(parser)
    few = ("--requests", "16", "--alone", "0")
    return parser.parse_args(["--matrix", "--device", "cpu", "--json", str(path), *few, *words])


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stands in for the processes of rows; refuses what the guard refuses."""
    commands: list[list[str]] = []

    def run(words: list[str], limit_s: float) -> str:
        commands.append(list(words))
        refused = 'kv_cache_dtype="fp8"' in words
        found = {"refused": "It is not validated."} if refused else GOOD
        Path(words[words.index("--json") + 1]).write_text(json.dumps(found))
        return ""

    monkeypatch.setattr(child, "run", run)
    return commands


def test_every_combination_becomes_a_row_and_is_not_run_again(tmp_path: Path, runs: list[list[str]]) -> None:
    args = arguments(tmp_path / "matrix.json")
    assert mt_matrix.run(args) == 0
    assert len(runs) == len(mt_matrix.CPU)
    rows = json.loads(args.json.read_text())["rows"]
    assert {row["passed"] for row in rows.values() if "passed" in row} == {"eager/passed"}
    assert sum("refused" in row for row in rows.values()) == 1
    assert mt_matrix.run(args) == 0
    assert len(runs) == len(mt_matrix.CPU)


def test_a_row_that_failed_is_run_again(tmp_path: Path, runs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    args = arguments(tmp_path / "matrix.json", "--architectures", "qwen3-tiny,llama-tiny")
    with monkeypatch.context() as broken:
        broken.setattr(child, "run", lambda words, limit_s: "its process ended with status 1")
        assert mt_matrix.run(args) == 1
    assert mt_matrix.run(args) == 0
    assert [words[2] for words in runs] == ["qwen3-tiny", "llama-tiny"]


def test_a_row_that_was_given_up_on_its_way_is_no_result(
    tmp_path: Path, runs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    args = arguments(tmp_path / "matrix.json", "--architectures", "qwen3-tiny", "--requests", "17")

    def give_up(words: list[str], limit_s: float) -> str:
        Path(words[words.index("--json") + 1]).write_text(json.dumps(GOOD))
        return "it was ended after 9 s without a result"

    with monkeypatch.context() as slow:
        slow.setattr(child, "run", give_up)
        assert mt_matrix.run(args) == 1
    (row,) = json.loads(args.json.read_text())["rows"].values()
    assert row["requests"] == 16
    assert "ended after 9 s" in row["error"]


@pytest.mark.parametrize("words", [("--dtype", "float32"), ("--unvalidated",), ("--requests", "17")])
def test_rows_of_other_arguments_are_run(tmp_path: Path, runs: list[list[str]], words: tuple[str, ...]) -> None:
    path = tmp_path / "matrix.json"
    assert mt_matrix.run(arguments(path, "--architectures", "qwen3-tiny")) == 0
    assert mt_matrix.run(arguments(path, "--architectures", "qwen3-tiny", *words)) == 0
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("changed", "must_refuse"),
    [
        ({"at_once": {"8": {**no_counts(), "rows_missing": 1}}}, False),
        ({"at_once": {}}, False),
        ({"failed": "FULL: rows are wrong"}, False),
        ({}, True),
    ],
)
def test_what_is_wrong(changed: dict[str, Any], must_refuse: bool) -> None:
    one = mt_matrix.Combination("qwen3-tiny", must_refuse=must_refuse)
    assert mt_matrix._wrong(one, mt_matrix._figures({**GOOD, **changed}))
    assert not mt_matrix._wrong(mt_matrix.Combination("qwen3-tiny"), mt_matrix._figures(GOOD))
    assert mt_matrix._wrong(mt_matrix.Combination("qwen3-tiny"), {"refused": "It is not validated."})


def test_a_small_pool_must_have_preempted_somebody() -> None:
    one = mt_matrix.Combination("gemma-4-tiny", pool_gib=0.01)
    row = mt_matrix._figures(GOOD)
    assert not mt_matrix._wrong(one, row)
    assert mt_matrix._wrong(one, {**row, "preempted": 0})


def test_names_of_combinations_differ() -> None:
    for table in (mt_matrix.CUDA, mt_matrix.CPU):
        assert len({one.name for one in table}) == len(table)


def test_a_process_that_does_not_end_is_ended_with_what_it_started() -> None:
    sleep = "import time; time.sleep(60)"
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{sleep}']); {sleep}"
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    began = time.monotonic()
    assert "ended after 2 s without a result" in child.run([code], 2, (sys.executable, "-c"))
    assert time.monotonic() - began < 20
    left = {process.pid for process in psutil.Process().children(recursive=True)} - before
    assert not left


def test_how_a_process_ended() -> None:
    assert child.run(["raise SystemExit(3)"], 60, (sys.executable, "-c")) == "its process ended with status 3"
    assert child.run(["pass"], 60, (sys.executable, "-c")) == ""
