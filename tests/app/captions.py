"""Makes captions, records and sessions for tests."""

from __future__ import annotations

from typing import Any

from app.controller import SessionBegan, SessionEnded
from app.session_record import SessionRecord, Utterance
from engine.messages import Caption

INFO = {
    "model": "gemma-3-270m",
    "head_set": "gemma-3-270m/en-de",
    "policy": {"name": "alignatt", "theta": 0.5},
    "capture_mode": "eager",
    "versions": {"surtitle": "0.1.0"},
    "seam": "cb_eval",
}
BEGAN = SessionBegan(
    "0a1b2c3d-0000-4000-8000-000000000000", "laptop", "en", "de", "talk.wav", "demo quality", 1_700_000_000.0, INFO
)
ENDED = SessionEnded(BEGAN.session_id, 12.0, 13.5)


def caption(utterance_id: int = 0, stable: str = "", source: str = "", **more: Any) -> Caption:
    """A caption; what is not given is plausible."""
    values: dict[str, Any] = {
        "held": "",
        "source_tail": "",
        "covered_source_units": len(source.split()) or None,
        "final": False,
        "reason": "stop",
        "start_s": 2.0 * utterance_id,
        "end_s": 2.0 * utterance_id + 1.5,
        "audio_s": 2.0 * utterance_id + 1.5,
        "emitted_s": 2.0 * utterance_id + 2.0,
    }
    return Caption(utterance_id=utterance_id, stable=stable, source_stable=source, **{**values, **more})


def record(*utterances: tuple[str, str, float, float]) -> SessionRecord:
    """A finished session of (source, target, start_s, end_s)."""
    items = tuple(Utterance(i, source, target, a, b, True) for i, (source, target, a, b) in enumerate(utterances))
    return SessionRecord("20240101-120000-abcdef01", utterances=items, ended=True)
