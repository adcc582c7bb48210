"""The work folder of a benchmark: drafts and outcomes, so that a run that was cut off goes on where it was.

Each segment has a file of drafts of its own, so processes that work on different segments share no file; outcomes are
written by one process alone.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from engine.benchmarks.curves.points import Outcome, Point, Spoken
from engine.evaluation.recognition import Timing

# What decides over the outcome of a point; when any of it changes, points are run again.
_DECIDING = (
    "alignatt/*.py",
    "mt/session.py",
    "evaluation/captions.py",
    "evaluation/drive.py",
    "evaluation/recognition.py",
    "benchmarks/curves/points.py",
)


def fingerprint(*parts: Any) -> str:
    """Sixteen hex digits that change with any part."""
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_fingerprint() -> str:
    """Changes with the code that turns drafts into captions."""
    engine = Path(__file__).resolve().parents[2]
    files = sorted(path for pattern in _DECIDING for path in engine.glob(pattern))
    return fingerprint([path.read_text(encoding="utf-8") for path in files])


def default_folder(pair: str) -> Path:
    """Where drafts and outcomes of a language pair are kept."""
    return Path(user_cache_path("surtitle")) / "benchmarks" / f"policies_{pair}"


class WorkFolder:
    """Drafts and outcomes made under one `identity` (model, heads, prompt) and `timing`.

    What was made under another, or by other code, stays in the folder and is not found.
    """

    def __init__(self, folder: Path, identity: str, timing: Timing) -> None:
        self._folder = folder
        self._identity = identity
        self._setting = fingerprint(identity, asdict(timing), code_fingerprint())
        self._path = folder / "outcomes.jsonl"
        self._found: dict[str, Outcome] = {}
        if self._path.exists():
            *rows, unfinished = self._path.read_text(encoding="utf-8").split("\n")
            if unfinished:  # half a line of a writer that was killed
                self._path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
            for row in rows:
                data = json.loads(row)
                self._found[data["key"]] = Outcome(**data["outcome"])

    def drafts(self, spoken: Spoken) -> Path:
        """The file with the drafts of a segment."""
        return self._folder / "drafts" / f"{fingerprint(self._identity, asdict(spoken.segment))}.jsonl"

    def get(self, point: Point, spoken: Spoken) -> Outcome | None:
        """What the point made of the segment, if that is known."""
        return self._found.get(self._key(point, spoken))

    def add(self, point: Point, spoken: Spoken, outcome: Outcome) -> None:
        """Keep an outcome."""
        key = self._key(point, spoken)
        self._found[key] = outcome
        self._folder.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"key": key, "outcome": asdict(outcome)}, ensure_ascii=False) + "\n")

    def _key(self, point: Point, spoken: Spoken) -> str:
        return fingerprint(self._setting, point.as_dict(), asdict(spoken))
