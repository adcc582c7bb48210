"""A real sound server: what it lists, and a microphone that falls silent, vanishes with its server, and comes back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.machine import Microphone, wait_for

pytestmark = pytest.mark.e2e

LISTEN = """
import asyncio, json, sys
from app.devices import list_inputs, tidy
from app.microphone import MicrophoneSource
from app.source import Feed

def say(**what):
    print(json.dumps(what), flush=True)

async def main():
    say(devices=[(d.label, d.monitor) for d in tidy(list_inputs())])
    gaps = []
    feed = Feed(lambda audio: None, lambda a, b: say(gap=[a, b]))
    feed.level.subscribe(lambda peak: say(level=peak, at_s=feed.sent_s))
    feed.reports.subscribe(lambda report: say(trouble=report.trouble, lost=report.lost, name=report.name))
    source = MicrophoneSource("Monitor of Null Output (PulseAudio)", required=False)
    asyncio.get_running_loop().add_reader(sys.stdin, feed.stop)
    await source.run(feed)
    say(ended=True)

asyncio.run(main())
"""


class Listener:
    """A process that records, and what it has said so far."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._said = folder / "said.jsonl"
        with self._said.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", LISTEN], stdin=subprocess.PIPE, stdout=out, env={**os.environ, **env}
            )

    def said(self, key: str) -> list[dict[str, Any]]:
        lines = self._said.read_text(encoding="utf-8").splitlines(keepends=True)
        return [row for line in lines if line.endswith("\n") and key in (row := json.loads(line))]

    def wait(self, condition: Callable[[], object], what: str) -> None:
        wait_for(condition, 60, what)

    def heard(self) -> int:
        return len([row for row in self.said("level") if row["level"] > 0.01])


def control(voice: Microphone, *words: str) -> None:
    environment = {**os.environ, **voice.environment}
    subprocess.run(["pactl", *words], env=environment, capture_output=True, check=True, timeout=10)


def test_a_suspended_microphone_is_waited_for(tmp_path: Path, voice: Microphone, recording: Path) -> None:
    talk = voice.play(recording)
    listener = Listener(tmp_path, voice.environment)
    try:
        listener.wait(lambda: listener.heard() > 10, "it hears")
        (listed,) = listener.said("devices")
        assert ["Monitor of Null Output", True] in listed["devices"]
        assert ["pulse", False] not in listed["devices"], "the server itself is no microphone"

        control(voice, "suspend-sink", "voice", "1")
        listener.wait(lambda: any("went silent" in row["trouble"] for row in listener.said("trouble")), "it is said")
        control(voice, "suspend-sink", "voice", "0")
        talk.terminate()
        talk.wait(10)
        before, talk = listener.heard(), voice.play(recording)
        listener.wait(lambda: listener.heard() > before + 10, "it hears again")
        listener.wait(lambda: listener.said("trouble")[-1]["trouble"] == "", "all is well again")
        assert any(gap["gap"][1] - gap["gap"][0] > 1.5 for gap in listener.said("gap")), "the lost time is on the clock"

        assert listener.process.stdin is not None
        listener.process.stdin.close()
        assert listener.process.wait(30) == 0
        assert listener.said("ended")
    finally:
        talk.terminate()
        talk.wait(10)
        listener.process.kill()
        listener.process.wait(10)
