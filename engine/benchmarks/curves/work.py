"""The work folder of a benchmark: drafts and finished points, so that a run that was cut off goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from engine.benchmarks.curves.points import Outcome, Point
from engine.evaluation.talks import Segment

# What decides over the outcome of a point; when any of it changes, finished points are run again.
_DECIDING = (
    "alignatt/*.py",
    "mt/session.py",
    "evaluation/captions.py",
    "evaluation/drive.py",
    "evaluation/recognition.py",
    "benchmarks/curves/points.py",
)


def fingerprint(*parts: Any) -> str:
    """Twelve hex digits that change with any part."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def code_fingerprint() -> str:
    """Changes with the code that turns drafts into captions."""
    engine = Path(__file__).resolve().parents[2]
    files = sorted(path for pattern in _DECIDING for path in engine.glob(pattern))
    return fingerprint([path.read_text(encoding="utf-8") for path in files])


def segments_fingerprint(segments: Sequence[Segment]) -> str:
    """Changes with the segments or their times."""
    return fingerprint([asdict(segment) for segment in segments])


def default_folder(pair: str) -> Path:
    """Where drafts and points of a language pair are kept."""
    return Path(user_cache_path("surtitle")) / "benchmarks" / f"policies_{pair}"


class FinishedPoints:
    """Outcomes by point, one JSON line each; lines of another `setting` in the same file are left alone."""

    def __init__(self, path: Path, setting: str) -> None:
        self._path = path
        self._setting = setting
        self._found: dict[str, list[Outcome]] = {}
        if path.exists():
            for row in path.read_text(encoding="utf-8").split("\n")[:-1]:
                data = json.loads(row)
                if data["setting"] == setting:
                    self._found[data["point"]] = [Outcome(**outcome) for outcome in data["outcomes"]]

    def get(self, point: Point) -> list[Outcome] | None:
        return self._found.get(fingerprint(point.as_dict()))

    def add(self, point: Point, outcomes: Sequence[Outcome]) -> None:
        key = fingerprint(point.as_dict())
        self._found[key] = list(outcomes)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        row = {"setting": self._setting, "point": key, "outcomes": [asdict(outcome) for outcome in outcomes]}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
