"""What the sound server (PulseAudio or PipeWire) can record, through its own tool: names for people, and monitors.

PortAudio's ALSA side sees the whole server as one device. Which source that device records is decided by the
environment variable PULSE_SOURCE at the moment it is opened.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 2.0
_SPEC = re.compile(r"(\d+)ch (\d+)Hz")
_VARIABLE = "PULSE_SOURCE"


@dataclass(frozen=True, slots=True)
class PulseSource:
    """One source. `card`: the number of its sound card, "" for none."""

    name: str
    description: str
    channels: int
    sample_rate: int
    monitor: bool
    card: str


def pulse_sources() -> list[PulseSource]:
    """The sources of the running server; none where there is no server or no `pactl`."""
    command = ["pactl", "--format=json", "list", "sources"]
    try:
        asked = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=True)
        rows = json.loads(asked.stdout.decode("utf-8", errors="replace"))
        return [_source(row) for row in rows]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _source(row: dict[str, Any]) -> PulseSource:
    properties = row.get("properties") or {}
    spec = _SPEC.search(str(row.get("sample_specification", "")))
    name = str(row["name"])
    return PulseSource(
        name,
        " ".join(str(row.get("description") or name).split()),
        int(spec[1]) if spec else 1,
        int(spec[2]) if spec else 48_000,
        properties.get("device.class") == "monitor" or name.endswith(".monitor"),
        str(properties.get("alsa.card", "")),
    )


@contextmanager
def pulse_source(name: str) -> Iterator[None]:
    """Whatever is opened inside records this source; "" leaves the choice to the server."""
    if not name:
        yield
        return
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = name
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before
