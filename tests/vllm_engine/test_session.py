"""A whole session on vLLM's CPU engine: Qwen3-ASR, its aligner and Gemma 4 in their true classes at toy size."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.__main__ import main

TINY = ("recogniser.model=qwen3-asr-tiny", "translator.model=gemma-4-tiny", "recogniser.chunk_ms=500")


def test_a_session_on_random_weights_ends_without_leaving_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # Workers inside their engine cores, as on a GPU: three processes less to start.
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    target = tmp_path / "session.json"
    words = ["--preset", "gemma_low_latency", "--random-weights", "--minutes", "0.15", "--kill", "--json", str(target)]
    assert main(["benchmark", "session", *words, *(word for value in TINY for word in ("--set", value))]) == 0
    figures = json.loads(target.read_text())
    assert figures["complete"] is True
    assert figures["models"] == {
        "recogniser": "qwen3-asr-tiny", "aligner": "qwen3-forced-aligner-tiny", "translator": "gemma-4-tiny",
    }  # fmt: skip
    assert figures["made_up"]["words"]
    assert figures["capture_mode"] == "eager/passed"
    expected = {"capture", "voice_activity", "recogniser", "alignment", "wait", "draft", "decision", "caption", "whole"}
    assert set(figures["stage_ms"]) == expected
    assert figures["stage_ms"]["alignment"]["count"] == figures["recogniser"]["updates"] > 0
    assert figures["rows"]["expected"] > 0
    assert figures["rows"]["missing"] == figures["rows"]["nonfinite"] == figures["text"]["retractions"] == 0
    assert figures["errors"] == []
    assert figures["end"]["descendants"] >= 3  # an engine core for each model
    assert figures["end"]["processes_left"] == 0
