"""Talks as text: source lines, reference lines, and when each line was said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from engine.files import why
from engine.presets import resources

HELD_OUT_TALKS = 5
SEGMENTS_FILE = "audio-segments.yaml"


class TalkError(Exception):
    """Talks that cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class SpokenSpan:
    """A stretch of a recording, in seconds from its start."""

    talk: str
    offset_s: float
    duration_s: float


@dataclass(frozen=True, slots=True)
class Segment:
    """One line of a talk: what was said, its reference translation, and when it was said."""

    source: str
    reference: str
    span: SpokenSpan


def held_out_folder() -> Path:
    """The shipped talks: never calibrated on, never tuned on."""
    return resources() / "evaluation"


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, without the empty ones at its end. Raises `TalkError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TalkError(f"{path} cannot be read: {why(error)}.") from error
    return text.rstrip("\n").split("\n") if text.strip() else []


def read_spans(path: Path) -> list[SpokenSpan]:
    """Segment times of a YAML list of {wav, offset, duration} in seconds, the form of the IWSLT campaigns.

    Raises `TalkError` when the file is something else.
    """
    try:
        rows = yaml.safe_load(path.read_text(encoding="utf-8"))
        spans = [SpokenSpan(Path(row["wav"]).stem, float(row["offset"]), float(row["duration"])) for row in rows]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise TalkError(f"{path} cannot be read: {str(error).splitlines()[0]}.") from error
    except (TypeError, KeyError, ValueError) as error:
        raise TalkError(f"{path} is not a list of segments with wav, offset and duration.") from error
    if bad := next((number for number, span in enumerate(spans, 1) if span.duration_s <= 0 or span.offset_s < 0), None):
        raise TalkError(f"{path}, segment {bad}: offset and duration must be positive.")
    return spans


def load_segments(folder: Path, source_lang: str, target_lang: str) -> list[Segment]:
    """All segments of a folder with `audio-segments.yaml` and one `<language>.txt` for each side.

    Raises `TalkError` when a file is absent or the line counts differ.
    """
    spans = read_spans(folder / SEGMENTS_FILE)
    sides = []
    for language in (source_lang, target_lang):
        path = folder / f"{language}.txt"
        if not path.is_file():
            raise TalkError(f"There is no {path.name} in {folder}: these talks do not cover '{language}'.")
        lines = [_repair_quotes(line) for line in read_lines(path)]
        if len(lines) != len(spans):
            raise TalkError(f"{path} has {len(lines)} lines, but {SEGMENTS_FILE} names {len(spans)} segments.")
        sides.append(lines)
    return [Segment(*row) for row in zip(*sides, spans, strict=True)]


def calibration_segments(segments: Sequence[Segment]) -> list[Segment]:
    """The segments of all talks but the last five, which are held out."""
    talks = list(dict.fromkeys(segment.span.talk for segment in segments))
    if len(talks) <= HELD_OUT_TALKS:
        raise TalkError(f"These are {len(talks)} talks: without the {HELD_OUT_TALKS} that are held out none is left.")
    kept = set(talks[:-HELD_OUT_TALKS])
    return [segment for segment in segments if segment.span.talk in kept]


def thin_out(segments: Sequence[Segment], limit: int | None) -> list[Segment]:
    """At most `limit` segments, spread evenly over all of them."""
    if limit is None or limit >= len(segments):
        return list(segments)
    return [segments[at * len(segments) // limit] for at in range(limit)]


def _repair_quotes(line: str) -> str:
    """Undo what a table format left in the text: doubled quotation marks, and one that opens or closes a cell."""
    line = line.replace('""', '"').strip()
    if line.count('"') % 2 and line.startswith('"'):
        return line[1:]
    if line.count('"') % 2 and line.endswith('"'):
        return line[:-1]
    return line
