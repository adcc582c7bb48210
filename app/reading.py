"""One session as a person reads it, without Qt: its lines, search, places in time, bookmarks. Views subscribe."""

from __future__ import annotations

import bisect
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from app.export.text import clean
from app.observe import Notifier
from app.session_record import SessionRecord, Utterance

INSERTED, CHANGED, RESET = "inserted", "changed", "reset"


@dataclass(frozen=True, slots=True)
class Change:
    """What has happened to the lines: one was `inserted` at, or `changed` in, `row`; or everything is new."""

    kind: str
    row: int = -1


class Reading:
    """The lines of a session, in the order of their ids, which is that of time. `apply` takes the running session's
    journal rows.
    """

    def __init__(self, record: SessionRecord | None = None) -> None:
        self.changed: Notifier[Change] = Notifier()
        self.rows: list[Utterance] = []
        self.bookmarks: set[int] = set()
        self._ids: list[int] = []
        self._folded: list[str] = []
        self._load(record)

    def open(self, record: SessionRecord | None) -> None:
        """Another session."""
        self._load(record)
        self.changed.emit(Change(RESET))

    def apply(self, row: dict[str, Any]) -> None:
        """One row of the running session's journal, already checked by who wrote it."""
        match row["type"]:
            case "session":
                self.open(None)
            case "stable" | "final":
                self._put(
                    Utterance(
                        row["utterance_id"],
                        row["source"],
                        row["target"],
                        row["start_s"],
                        row["end_s"],
                        row["type"] == "final",
                    )
                )
            case "bookmark":
                self.mark(row["utterance_id"], row["on"])

    def mark(self, utterance_id: int, on: bool) -> None:
        """Show a bookmark, or show it no more."""
        (self.bookmarks.add if on else self.bookmarks.discard)(utterance_id)
        row = bisect.bisect_left(self._ids, utterance_id)
        if row < len(self._ids) and self._ids[row] == utterance_id:
            self.changed.emit(Change(CHANGED, row))

    def marked(self, row: int) -> bool:
        return self._ids[row] in self.bookmarks

    # ------------------------------------------------------------ finding

    def search(self, text: str) -> list[int]:
        """Rows that hold this text in either language, in any case; none for an empty one."""
        wanted = fold(text)
        return [row for row, folded in enumerate(self._folded) if wanted in folded] if wanted else []

    def at_time(self, seconds: float) -> int:
        """The row that is spoken at this time, or the last one before it; -1 when there is none at all."""
        row = bisect.bisect_right(self.rows, seconds, key=lambda utterance: utterance.start_s) - 1
        return max(row, 0) if self.rows else -1

    def next_mark(self, row: int) -> int:
        """The next row with a bookmark, from the beginning again behind the last; -1 when there is none."""
        marked = [index for index in range(len(self._ids)) if self._ids[index] in self.bookmarks]
        return next((index for index in marked if index > row), marked[0] if marked else -1)

    def text(self, rows: Iterable[int], what: str) -> str:
        """Lines as text to paste. `what`: "source", "target", or "both" with a tab between."""
        lines = []
        for row in sorted(set(rows)):
            source, target = clean(self.rows[row].source), clean(self.rows[row].target)
            lines.append({"source": source, "target": target}.get(what, f"{source}\t{target}"))
        return "\n".join(lines)

    # ------------------------------------------------------------ keeping

    def _load(self, record: SessionRecord | None) -> None:
        self.rows = list(record.utterances) if record else []
        self.bookmarks = set(record.bookmarks) if record else set()
        self._ids = [row.utterance_id for row in self.rows]
        self._folded = [_searched(row) for row in self.rows]

    def _put(self, utterance: Utterance) -> None:
        row = bisect.bisect_left(self._ids, utterance.utterance_id)
        if row < len(self._ids) and self._ids[row] == utterance.utterance_id:
            self.rows[row], self._folded[row] = utterance, _searched(utterance)
            self.changed.emit(Change(CHANGED, row))
        elif utterance.source.strip() or utterance.target.strip():
            self.rows.insert(row, utterance)
            self._ids.insert(row, utterance.utterance_id)
            self._folded.insert(row, _searched(utterance))
            self.changed.emit(Change(INSERTED, row))


def fold(text: str) -> str:
    """Text as it is compared: composed, without case."""
    return unicodedata.normalize("NFC", text).casefold()


def _searched(utterance: Utterance) -> str:
    return f"{fold(utterance.source)}\n{fold(utterance.target)}"


def clock(seconds: float) -> str:
    """Session time as h:mm:ss."""
    whole = max(0, int(seconds))
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def parse_clock(text: str) -> float | None:
    """Seconds of "1:02:03", "2:03" or "90"; None when it is no time."""
    parts = text.strip().replace(",", ".").split(":")
    try:
        values = [float(part) for part in parts]
    except ValueError:
        return None
    if len(values) > 3 or not all(0 <= value < 1e6 for value in values):
        return None
    seconds = 0.0
    for value in values:
        seconds = seconds * 60 + value
    return seconds
