"""Hand-made captions and logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.schemas import CaptionLine, EndLine, LogLine, SessionLine, log_line_to_json


def session_line(**changes: Any) -> SessionLine:
    return SessionLine(
        **{
            "preset": "laptop",
            "source_lang": "en",
            "target_lang": "de",
            "model": "m",
            "head_set": "h",
            "policy": {"name": "alignatt"},
            "capture_mode": "eager",
            "versions": {},
            "info": {"self_test": "passed"},
            **changes,
        }
    )


def caption(seq: int, stable: str, clock_s: float, **changes: Any) -> CaptionLine:
    """A caption of an utterance that is said from 0 to 2 s; computation takes half a second."""
    return CaptionLine(
        **{
            "seq": seq,
            "utterance_id": 0,
            "stable": stable,
            "held": "",
            "source_stable": "",
            "source_tail": "",
            "covered_source_units": None,
            "final": False,
            "reason": "stop",
            "start_s": 0.0,
            "end_s": 2.0,
            "audio_s": min(clock_s, 2.0),
            "clock_s": clock_s,
            "emitted_s": clock_s + 0.5,
            "lag_s": None,
            "stages": {"wait_ms": 300.0, "mt_ms": 400.0, "decide_ms": 100.0},
            **changes,
        }
    )


def write(path: Path, lines: Sequence[LogLine]) -> Path:
    path.write_text("".join(log_line_to_json(line) + "\n" for line in lines), encoding="utf-8")
    return path


def one_utterance() -> list[LogLine]:
    """Four words: two after 1 s, one after 2 s, the last with the final at 2.5 s."""
    return [
        session_line(),
        caption(0, "", 0.5, held="Das"),
        caption(1, "Das ist", 1.0, held=" ein"),
        caption(2, "Das ist ein", 2.0, reason="alignatt:commit_fast_path"),
        caption(3, "Das ist ein Satz.", 2.5, final=True),
        EndLine(audio_s=2.5, wall_s=5.0),
    ]
