"""Things that several tests of the app use."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import soundfile

from app.engine_child import Target
from app.engine_client import EngineClient, Limits
from engine.messages import Audio, Configure

FAKE = Target("tests.app.fake_engine", "run")


def client(**limits: float) -> EngineClient:
    """A client of the fake engine."""
    return EngineClient(FAKE, Limits(**limits))


def configure(**script: Any) -> Configure:
    """What to load; `script` tells the fake engine what to do."""
    return Configure("laptop", "en", "de", context=json.dumps(script))


def audio(start_s: float, seconds: float = 0.1, rate: int = 16_000) -> Audio:
    return Audio(np.zeros(round(seconds * rate), "<f4").tobytes(), rate, 1, start_s)


async def until(condition: Callable[[], bool], limit_s: float = 30.0) -> None:
    """Wait for a condition; the limit is for a machine under load, not a measure."""
    end_s = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end_s, "the condition did not come true"
        await asyncio.sleep(0.01)


def gone(pid: int) -> bool:
    """No process of this id runs (a zombie does not)."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def tone(path: Path, seconds: float = 2.0, rate: int = 16_000, channels: int = 1, subtype: str = "PCM_16") -> Path:
    """An audio file with a quiet tone."""
    t = np.arange(round(seconds * rate)) / rate
    wave = 0.25 * np.sin(2 * np.pi * 220 * t)
    soundfile.write(path, np.repeat(wave[:, None], channels, axis=1), rate, subtype=subtype)
    return path
