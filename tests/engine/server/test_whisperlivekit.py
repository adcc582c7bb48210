"""WhisperLiveKit's own client against this server, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engine.alignatt.policy import Policy
from engine.mt.contract import Translator
from engine.mt.factory import create_translator
from engine.presets import load_preset
from engine.server.translation import Terms
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.server.harness import serving

CLIENT = Path(sys.prefix) / "whisperlivekit"
SCRIPT = Path(__file__).with_name("whisperlivekit_session.py")
SENTENCES = [
    "The weather is nice today and we go for a walk.",
    "My brother lives in a small house near the river.",
    "Do you know when the train leaves?",
    "I have read this book twice already.",
]

pytestmark = pytest.mark.skipif(
    not (CLIENT / "whisperlivekit" / "translation_alignatt.py").is_file(),
    reason=f"whisperlivekit is not in {CLIENT}: `make test` puts it there",
)


def talk(translator: Translator, latency: str, terms: Terms, in_time: bool = True) -> dict[str, Any]:
    """What the client showed. `in_time`: it never lost patience (it waits 15 s for an answer, then connects anew)."""
    with serving(translator, terms=terms) as server:
        done = subprocess.run(
            [sys.executable, "-I", str(SCRIPT), str(CLIENT), server.url, latency],
            input="\n".join(SENTENCES),
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert not in_time or "sidecar" not in done.stderr  # the client's complaint about us
        assert server.metric("errors_total", code="bad_protocol") == 0
        assert server.metric("append_only_violations_total") == 0
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def check(found: dict[str, Any]) -> None:
    """One segment for each sentence, none said twice, each a continuation of everything shown before it."""
    assert len(found["segments"]) == len(SENTENCES)
    assert len(set(found["segments"])) == len(SENTENCES)
    for segment, shown in zip(found["segments"], found["buffers"], strict=False):
        for before, after in zip(shown, [*shown[1:], segment], strict=True):
            assert after.startswith(before)
    assert found["buffers"][-1] == []


@pytest.mark.parametrize("latency", ["quality", "balanced", "low"])
def test_a_session_of_the_real_client(latency: str) -> None:
    found = talk(ScriptedTranslator(), latency, Terms(Policy()))
    check(found)
    assert found["segments"] == [sentence.upper().replace(".", "").replace("?", "?") for sentence in SENTENCES]
    assert any(found["buffers"])


@pytest.mark.models
def test_a_session_of_the_real_client_with_the_packaged_model() -> None:
    preset = load_preset("laptop")
    translator = create_translator(preset, "en", "de", lambda fraction, text: None)
    try:
        found = talk(translator, "balanced", Terms(preset.policy), in_time=False)
    finally:
        translator.close()
    check(found)
    assert all(len(segment.split()) > 2 for segment in found["segments"])
