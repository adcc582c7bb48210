"""What a session was, and how its journal is read back: whole, cut off or damaged.

A journal is a file of JSON lines, `<start time>-<id>.jsonl`: `session`, then `stable` for each growth of stable text,
`final`, `gap` (audio that was lost), `bookmark` (an utterance is marked or unmarked), and `end`. Texts are cumulative
within their utterance, so that any line may be missing without harm. A killed process leaves no `end` line and at worst
half a line, which reading passes over.
"""

from __future__ import annotations

import json
import logging
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.errors import UserError
from app.files import reason

SCHEMA_VERSION = 1
log = logging.getLogger(__name__)


class TranscriptError(UserError):
    """A session that cannot be found, read or deleted; the message is one sentence."""


class NewerSessionError(TranscriptError):
    """A journal of a newer version of the program, which may mean something else by the same words."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """Stable text of one utterance. `final` is false when the session was cut off inside it."""

    utterance_id: int
    source: str
    target: str
    start_s: float
    end_s: float
    final: bool


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """One session.

    `gaps`: (start_s, end_s) of lost audio; `ended`: false when the program was killed in it; `bookmarks`: ids of the
    utterances that a person has marked.
    """

    session_id: str
    title: str = ""
    preset: str = ""
    source_lang: str = ""
    target_lang: str = ""
    started_at: str = ""
    utterances: tuple[Utterance, ...] = ()
    gaps: tuple[tuple[float, float], ...] = ()
    ended: bool = False
    audio_s: float = 0.0
    damaged_lines: int = 0
    bookmarks: tuple[int, ...] = ()

    @property
    def has_text(self) -> bool:
        return any(u.source.strip() or u.target.strip() for u in self.utterances)


class RecordBuilder:
    """Builds a record from journal rows; the running session and the reader share it, so both see the same."""

    def __init__(self, session_id: str) -> None:
        self._record = SessionRecord(session_id)
        self._utterances: dict[int, Utterance] = {}
        self._gaps: list[tuple[float, float]] = []
        self._bookmarks: set[int] = set()

    def grows(self, row: Utterance) -> bool:
        """Whether this utterance adds something.

        Stable text that shrank or changed does not count, and is logged.
        """
        old = self._utterances.get(row.utterance_id)
        if old is None:
            return bool(row.source or row.target or row.final)
        if old.final:
            return False
        if not (row.target.startswith(old.target) and row.source.startswith(old.source)):
            log.error("Stable text of utterance %d was changed; the first wording is kept.", row.utterance_id)
            return False
        return row.final or (row.source, row.target) != (old.source, old.target)

    def apply(self, row: dict[str, Any]) -> None:
        """Take one row. Raises KeyError, TypeError or ValueError when the row is damaged, and `NewerSessionError`."""
        kind = row["type"]
        if kind == "session":
            if int(row["schema_version"]) > SCHEMA_VERSION:
                name = self._record.session_id
                raise NewerSessionError(
                    f"The session {name} was recorded by a newer version of Surtitle: open it with that one."
                )
            self._record = replace(
                self._record,
                title=str(row["title"]),
                preset=str(row["preset"]),
                source_lang=str(row["source_lang"]),
                target_lang=str(row["target_lang"]),
                started_at=str(row["started_at"]),
            )
        elif kind in ("stable", "final"):
            utterance = Utterance(
                int(row["utterance_id"]),
                str(row["source"]),
                str(row["target"]),
                _seconds(row["start_s"]),
                _seconds(row["end_s"]),
                kind == "final",
            )
            if self.grows(utterance):
                self._utterances[utterance.utterance_id] = utterance
        elif kind == "gap":
            self._gaps.append((_seconds(row["start_s"]), _seconds(row["end_s"])))
        elif kind == "bookmark":
            marked = {int(row["utterance_id"])}
            self._bookmarks = self._bookmarks | marked if row["on"] else self._bookmarks - marked
        elif kind == "end":
            self._record = replace(self._record, ended=True, audio_s=_seconds(row["audio_s"]))
        else:
            raise ValueError(f"row type {kind!r}")

    def record(self, damaged_lines: int = 0) -> SessionRecord:
        spoken = [u for _, u in sorted(self._utterances.items()) if u.source.strip() or u.target.strip()]
        audio_s = max([self._record.audio_s, *(u.end_s for u in spoken)])
        return replace(
            self._record,
            utterances=tuple(spoken),
            gaps=tuple(self._gaps),
            audio_s=audio_s,
            damaged_lines=damaged_lines,
            bookmarks=tuple(sorted(self._bookmarks)),
        )


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not math.isfinite(seconds):
        raise ValueError(f"time {value!r}")
    return seconds


def read_session(path: Path) -> SessionRecord:
    """Read a journal, whole or cut off.

    Damaged lines are counted and passed over. Raises `TranscriptError`.
    """
    try:
        rows = path.read_bytes().split(b"\n")
    except OSError as error:
        raise TranscriptError(f"The session {path.stem} cannot be read ({reason(error)}).") from error
    builder, damaged, good = RecordBuilder(path.stem), 0, 0
    for raw in filter(None, (row.strip(b"\0\r ") for row in rows)):
        try:
            builder.apply(json.loads(raw))
            good += 1
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            damaged += 1
            log.warning("A damaged line in %s was passed over: %s", path, error)
    if damaged and not good:
        raise TranscriptError(f"The session {path.stem} is not a session journal or is damaged throughout.")
    return builder.record(damaged)
