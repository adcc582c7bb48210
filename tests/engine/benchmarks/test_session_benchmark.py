"""The benchmark of a whole session: its figures from a log, its processes, and its end when the session fails."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from engine.benchmarks import session as benchmark
from engine.benchmarks.processes import Sampler, Usage
from engine.schemas import read_log

FIXTURE = Path(__file__).parents[2] / "fixtures" / "session_log.jsonl"
LIMIT_S = 60.0


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    return parser.parse_args(words)


class Sampled:
    """What a sampler has seen of an app and its engine."""

    def __init__(self) -> None:
        self.usage = {1: Usage("app", 1.5, 100.2, [100.2]), 2: Usage("engine", 2.0, 600.0, [500.0, 600.0])}
        self.peak_total_mib = 700.2


def test_figures_of_a_log() -> None:
    lines = read_log(FIXTURE)
    figures = benchmark._figures(lines, Sampled(), 3.0, arguments("--fast"))  # type: ignore[arg-type]
    assert figures["pace"] == "fast"
    assert figures["real_time_factor"] == pytest.approx(2.0 / figures["audio_s"], abs=0.001)
    assert figures["processes"][1].items() >= {"name": "engine", "cpu_s": 2.0, "peak_mib": 600}.items()
    assert figures["peak_total_mib"] == 700
    assert figures["machine"]["cores"] >= 1
    assert json.loads(json.dumps(figures)) == figures
    benchmark._show(figures)


@pytest.mark.parametrize(("values", "p50", "p95"), [([3.0], 3.0, 3.0), ([float(n) for n in range(100)], 50.0, 95.0)])
def test_quantiles(values: list[float], p50: float, p95: float) -> None:
    assert benchmark._quantiles(values[::-1]) == {"p50": p50, "p95": p95}


def test_a_session_that_fails_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.run(arguments(str(tmp_path / "nowhere.wav"), "--json", str(tmp_path / "figures.json"))) == 1
    assert "The session ended with status 2." in capsys.readouterr().err
    assert not (tmp_path / "figures.json").exists()


def test_a_program_and_its_child_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.benchmarks.processes.SAMPLE_S", 0.02)
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; sys.stdin.read()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as program:
        sampler = Sampler(program.pid)
        end_s = time.monotonic() + LIMIT_S
        while sum(len(usage.own_mib) > 1 for usage in sampler.usage.copy().values()) < 2:
            assert time.monotonic() < end_s, "two processes were not seen"
            time.sleep(0.02)
        program.communicate()
        sampler.stop()
    assert program.pid in sampler.usage
    assert all(usage.peak_mib > 0 and max(usage.own_mib) > 0 for usage in sampler.usage.values())
    assert sampler.peak_total_mib >= max(usage.peak_mib for usage in sampler.usage.values())


def test_the_end_of_a_program_ends_its_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.benchmarks.processes.SAMPLE_S", 0.01)
    with subprocess.Popen([sys.executable, "-c", ""]) as program:
        sampler = Sampler(program.pid)
    sampler._thread.join(LIMIT_S)
    assert not sampler._thread.is_alive()
    sampler.stop()
