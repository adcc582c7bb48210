"""Drives WhisperLiveKit's own translation client through a talk, as its core would, and prints what a viewer saw.

    python whisperlivekit_session.py FOLDER URL LATENCY < sentences

FOLDER holds an installation of whisperlivekit; of it only the client is imported, not the package's torch.
"""

from __future__ import annotations

import json
import sys
import time
import types
from pathlib import Path
from typing import Any

STEP_S = 0.4
WAIT_S = 90.0


def client_of(folder: Path) -> tuple[Any, Any]:
    """The modules of the client and of its data, without running the package's own `__init__`."""
    package = types.ModuleType("whisperlivekit")
    package.__path__ = [str(folder / "whisperlivekit")]
    sys.modules["whisperlivekit"] = package
    from whisperlivekit import timed_objects, translation_alignatt

    return translation_alignatt, timed_objects


def main() -> None:
    module, data = client_of(Path(sys.argv[1]))
    engine = module.AlignAttRemoteEngine(url=sys.argv[2], source_language="en", preset=None, latency=sys.argv[3])
    client = engine.new_session("de")
    segments: list[str] = []
    buffers: list[list[str]] = [[]]

    def process() -> None:
        segment, buffer = client.process()
        if segment is not None:
            segments.append(segment.text)
            buffers.append([])
        if buffer.text:
            buffers[-1].append(buffer.text)

    at = 0.0
    sentences = [line.split() for line in sys.stdin.read().splitlines()]
    for words in sentences:
        for count, word in enumerate(words):
            tail = " ".join(words[count + 1 : count + 4])
            items = [data.ASRToken(at, at + STEP_S, word)]
            at += STEP_S
            if tail:
                items.append(data.HypothesisTail(start=at, end=at + 1.0, text=tail))
            client.insert_tokens(items)
            process()
    deadline = time.monotonic() + WAIT_S
    while len(segments) < len(sentences) and time.monotonic() < deadline:
        process()
        time.sleep(0.05)
    client.validate_buffer_and_reset()
    print(json.dumps({"segments": segments, "buffers": buffers}))
    if client._ws is not None:
        client._ws.close()


if __name__ == "__main__":
    main()
