"""The engine as a real child process: it answers, survives bad messages, and never outlives its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest
import soundfile

from engine.messages import (
    PROTOCOL_VERSION,
    Activity,
    Audio,
    Caption,
    Configure,
    Envelope,
    Error,
    Loading,
    Machine,
    Probe,
    Ready,
    Start,
    Stop,
    Stopped,
)
from engine.presets import resources
from tests.engine.child import LIMIT_S, Engine, gone, wait_for

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    engine = Engine()
    yield engine
    engine.close()


def test_an_engine_answers_survives_nonsense_and_leaves_when_asked(engine: Engine, tmp_path: Path) -> None:
    engine.send(Probe())
    assert engine.next(Machine).cpu_count >= 1
    assert os.getpgid(engine.pid) == engine.pid

    engine.commands.put(Envelope(PROTOCOL_VERSION + 1, 1, Probe()))
    assert engine.next(Error).message.startswith(f"The other side speaks protocol {PROTOCOL_VERSION + 1}")
    engine.commands.put("nonsense")
    assert engine.next(Error) == Error("protocol", "Expected an envelope on the engine queue, got str.")
    engine.commands.put(Envelope(PROTOCOL_VERSION, 1, Machine("3", 1, 1.0)))
    assert engine.next(Error).code == "protocol"

    engine.send(Configure("nonsense", "en", "de"))
    assert engine.next(Error).message.startswith("There is no preset 'nonsense'; presets are: laptop")
    engine.send(Configure("laptop", "de", "en"))
    assert engine.next(Error).message.startswith("Preset 'laptop' does not translate de-en")
    engine.send(Start("one"))
    assert engine.next(Error).code == "not_ready"
    engine.send(Audio(bytes(8), 16000, 1, 0.0))  # between sessions: normal, nothing is said
    engine.send(Stop())
    assert engine.next(Error).code == "no_session"

    engine.skip()
    engine.send(Probe())
    assert "were lost" in engine.next(Error).message
    assert engine.next(Machine).python == sys.version.split()[0]  # the command behind the hole was carried out

    os.kill(engine.pid, signal.SIGINT)  # Ctrl-C is the app's
    engine.send(Probe())
    engine.next(Machine)
    assert engine.leave() == 0
    (log,) = tmp_path.rglob("engine.log")
    text = log.read_text(encoding="utf-8")
    assert f"engine {engine.pid} started" in text
    assert f"engine {engine.pid} left" in text


def test_sigterm_ends_the_engine(engine: Engine) -> None:
    engine.send(Probe())
    engine.next(Machine)
    os.kill(engine.pid, signal.SIGTERM)
    engine.process.join(LIMIT_S)
    assert engine.process.exitcode == -signal.SIGKILL  # its whole group, itself included


def test_an_engine_whose_parent_is_killed_dies_with_its_group(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.child"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    pids: list[int] = []
    try:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        leader, grandchild = pids
        assert os.getpgid(grandchild) == leader != os.getpgid(parent.pid)
        parent.kill()
        parent.wait(LIMIT_S)
        wait_for(lambda: gone(leader), "the engine is gone")
        wait_for(lambda: gone(grandchild), "the engine's own child is gone")
    finally:
        if parent.stdout is not None:
            parent.stdout.close()
        parent.kill()
        parent.wait(LIMIT_S)
        for pid in pids:
            if not gone(pid):
                psutil.Process(pid).kill()


@pytest.mark.models
def test_a_session_with_the_built_in_models(engine: Engine) -> None:
    engine.send(Configure("laptop", "en", "de"))
    ready = engine.next(Ready)
    loading = [event.fraction for event in engine.heard if isinstance(event, Loading)]
    assert loading == sorted(loading)
    assert 0.0 <= loading[0] <= loading[-1] <= 1.0
    assert ready.info["quality"] == "demo quality"

    samples, rate = soundfile.read(resources() / "recordings" / "two-voices.flac", dtype="float32", frames=12 * 16000)
    engine.send(Start("one", live=False))
    engine.send(Start("two"))
    assert engine.next(Error).code == "busy"
    for at in range(0, len(samples), rate):
        engine.send(Audio(np.ascontiguousarray(samples[at : at + rate]).tobytes(), rate, 1, at / rate))
    engine.send(Stop())
    stopped = engine.next(Stopped)
    assert (stopped.session_id, stopped.audio_s) == ("one", pytest.approx(12.0))
    captions = [event for event in engine.heard if isinstance(event, Caption)]
    assert "country" in " ".join(caption.source_stable for caption in captions if caption.final)
    assert all(caption.stable for caption in captions if caption.final)
    assert any(isinstance(event, Activity) for event in engine.heard)

    engine.send(Start("two"))  # at once: the first is over
    engine.send(Stop())
    assert engine.next(Stopped).session_id == "two"
    assert not [event for event in engine.heard if isinstance(event, Error) and event.code != "busy"]
    assert engine.leave() == 0
