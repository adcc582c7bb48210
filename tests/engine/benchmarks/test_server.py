"""The server benchmark counts what it should, and notices broken promises."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path

import pytest

from engine.benchmarks import server as benchmark
from engine.benchmarks.server_client import SENTENCES, Script, talk
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import serving

INIT = {"source_lang": "en", "target_lang": "de"}


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    return parser.parse_args(words)


def test_the_whole_benchmark_against_a_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artefact = tmp_path / "server.json"
    with serving(ScriptedTranslator()) as server:
        words = ("--url", server.url, "--sessions", "1,3", "--speed", "40", "--pace", "20", "--json", str(artefact))
        assert benchmark.run(parsed(*words)) == 0
    report = json.loads(artefact.read_text())
    smoke = report["smoke"]["summary"]
    assert (smoke["finals"], smoke["retractions"], smoke["events"]) == (6, 0, len(report["smoke"]["events"]))
    for name in ("fast_path_events", "fast_path_rtt_ms_median", "commit_rtt_ms_median", "rtt_ms_p95"):
        assert name in smoke
    assert [found["sessions"] for found in report["sessions"]] == [1, 3]
    assert report["sessions"][1]["summary"]["finals"] == 18
    assert report["sessions"][1]["server"]["sessions_total"] == 3
    assert [found["threads"] for found in report["release_beside_threads"]] == [0, 2, 8]
    assert all(found["count"] > 100 for found in report["release_beside_threads"])
    assert "3 session(s)" in capsys.readouterr().out


def test_without_a_path_no_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with serving(ScriptedTranslator()) as server:
        words = ("--url", server.url, "--sessions", "1", "--speed", "40", "--pace", "20")
        assert benchmark.run(parsed(*words)) == 0
    assert list(tmp_path.iterdir()) == []


def test_releases_on_commit_are_counted_beside_their_draft() -> None:
    with serving(ScriptedTranslator()) as server:
        done = asyncio.run(talk(server.url, INIT, Script.of(SENTENCES[:2], 2.0), 5.0, False))
    summary = benchmark._summary([done])
    commit = summary["release_on_commit"]
    assert commit["count"] > 0
    assert commit["engine_calls"] == 0
    assert commit["draft_before_server_ms"]["p50"] > 0
    for name in ("queued_ms", "server_ms", "server_cpu_ms", "arrival_to_answer_ms"):
        assert 0 <= commit[name]["p50"] <= commit[name]["max"]
    assert commit["arrival_to_answer_ms"]["max"] >= commit["server_ms"]["max"] > 0
    assert done.finals == [sentence.upper().replace(".", "") for sentence in SENTENCES[:2]]


@pytest.mark.parametrize(
    "words",
    [
        ("--sessions", "many"),
        ("--sessions", "0"),
        ("--speed", "0"),
        ("--one-process",),
        ("--url", "ws://127.0.0.1:1"),
    ],
)
def test_bad_input(words: tuple[str, ...]) -> None:
    assert benchmark.run(parsed(*words)) == 2


def test_a_broken_promise_fails_the_run() -> None:
    good = {"retractions": 0, "errors": [], "missing_finals": 0, "release_on_commit": {"engine_calls": 0}}
    assert benchmark._sound({"smoke": {"summary": good}, "sessions": []})
    for bad in (
        {"retractions": 1},
        {"errors": ["x"]},
        {"missing_finals": 1},
        {"release_on_commit": {"engine_calls": 1}},
    ):
        assert not benchmark._sound({"smoke": {"summary": good}, "sessions": [{"summary": good | bad}]})
