"""Runs of the MT benchmark that find an artefact: what they leave out, and what a process that failed leaves behind."""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.benchmarks import child, mt, mt_correctness
from engine.benchmarks.mt_correctness import no_counts

ROWS = [{"case": "short-0", "ms_per_token": 5.0}]
SEAM: dict[str, Any] = {
    "hf_eager": {"rows": ROWS},
    "vllm_graphs": {
        "captured": {
            "rows": ROWS,
            "without_rows_ms": 5.0,
            "with_rows_ms": 5.1,
            "decode_step_ms": 4.0,
            "draft_ms": 80.0,
        },
        "plain": {"rows": ROWS, "without_rows_ms": 5.0},
    },
}
PART: dict[str, Any] = {"ms_per_token": 5.0, "sessions": [{"sessions": 8, "tokens_per_s": 9.0}], "rows": no_counts()}


def arguments(path: Path, *words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    mt.add_arguments(parser)
    return parser.parse_args(["qwen3-tiny", "--device", "cpu", "--json", str(path), *words])


class Processes:
    """Stands in for the processes of seams and ranks; `failing` ones save what they had and fail."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.failing: set[str] = set()

    def run(self, words: list[str], limit_s: float) -> str:
        options = dict(pairwise(words))
        seam, path = options["--seam"], Path(options["--json"])
        ranks = options.get("--tensor-parallel", "")
        self.started.append(ranks or seam)
        found = json.loads(path.read_text()) if path.is_file() else {}
        if ranks:
            found["captured"] = PART
            np.savez(options["--ranks-rows"], a=np.full((1, 1, 3), 0.5, np.float32))
        else:
            found = dict(SEAM[seam])
        failed = (ranks or seam) in self.failing
        if not failed:
            found |= {"environment": {}, "bandwidth": 0.0}
            if ranks and "--capture-only" not in words:
                found["plain"] = PART
            if ranks:
                found["other_modes"] = (
                    {} if ranks == "1" or "--one-mode" in words else {"PIECEWISE": PART, "FULL": PART}
                )
        path.write_text(json.dumps(found))
        return "it was ended after 9 s without a result" if failed else ""


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Processes:
    made = Processes()
    monkeypatch.setattr(child, "run", made.run)
    return made


def test_seams_that_are_there_are_not_run_again(tmp_path: Path, processes: Processes) -> None:
    args = arguments(tmp_path / "mt.json", "--seams", "hf_eager,vllm_graphs")
    processes.failing = {"vllm_graphs"}
    assert mt.run(args) == 1
    kept = json.loads(args.json.read_text())
    assert kept["seams"]["vllm_graphs"]["captured"]["draft_ms"] == 80.0
    assert "ended after 9 s" in kept["seams"]["vllm_graphs"]["error"]
    processes.failing = set()
    assert mt.run(args) == 0
    assert processes.started == ["hf_eager", "vllm_graphs", "vllm_graphs"]
    report = json.loads(args.json.read_text())
    assert report["first_released_word_ms"] == 80.0
    assert report["capture_cost_percent"] == {"tap_alone": 0.0, "tap_and_rows": 2.0}


def test_without_a_path_no_file_stays(
    tmp_path: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    args = arguments(tmp_path / "unused", "--seams", "hf_eager")
    args.json = None
    assert mt.run(args) == 0
    assert processes.started == ["hf_eager"]
    assert "5.00 ms per token" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []
    assert not args.json.parent.exists()


OTHER = [("--mt-vllm-cudagraph-mode", "FULL"), ("--backend", "FLASH_ATTN"), ("--heads", "1.1"), ("--own-process",)]


@pytest.mark.parametrize("words", OTHER)
def test_seams_of_other_arguments_are_run(tmp_path: Path, processes: Processes, words: tuple[str, ...]) -> None:
    path = tmp_path / "mt.json"
    assert mt.run(arguments(path, "--seams", "vllm_graphs")) == 0
    assert mt.run(arguments(path, "--seams", "vllm_graphs", *words)) == 0
    assert len(processes.started) == 2


@pytest.mark.parametrize("words", OTHER)
def test_ranks_of_other_arguments_are_run(tmp_path: Path, processes: Processes, words: tuple[str, ...]) -> None:
    path, few = tmp_path / "tp.json", ("--tensor-parallel", "2", "--only-ranks", "2", "--capture-only", "--one-mode")
    assert mt.run(arguments(path, *few)) == 0
    assert mt.run(arguments(path, *few, *words)) == 0
    assert len(processes.started) == 2


def test_ranks_go_on_with_what_is_missing(tmp_path: Path, processes: Processes) -> None:
    path = tmp_path / "tp.json"
    first = arguments(path, "--tensor-parallel", "2", "--only-ranks", "2", "--capture-only", "--one-mode")
    processes.failing = {"2"}
    assert mt.run(first) == 1
    processes.failing = set()
    assert mt.run(first) == 0
    assert mt.run(first) == 0
    assert processes.started == ["2", "2"]
    assert mt.run(arguments(path, "--tensor-parallel", "2")) == 0
    assert processes.started == ["2", "2", "1", "2"]
    report = json.loads(path.read_text())
    assert set(report["ranks"]["2"]["other_modes"]) == {"PIECEWISE", "FULL"}
    assert report["rows"]["difference_max"] == 0


def test_rows_that_were_looked_at_go_on_with_the_same_arguments_alone(tmp_path: Path) -> None:
    path, kind = tmp_path / "capture.json", {"mode": "FULL", "model": "gemma-4-e4b", "heads": [[1, 2]]}
    counts = {"8": {**no_counts(), "requests": 900}}
    path.write_text(json.dumps({**kind, "at_once": counts}))
    assert mt_correctness._load(path, {**kind, **mt_correctness.USUAL})["at_once"] == counts
    for other in ({"tensor_parallel": 2}, {"dtype": "float32"}, {"vllm": {"kv_cache_dtype": "bfloat16"}}):
        assert mt_correctness._load(path, {**kind, **mt_correctness.USUAL, **other})["at_once"] == {}
