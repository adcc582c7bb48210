"""The session log: what one line may say. The one definition, read by the app's writer and by `engine.evaluation`.

A log is a text file of JSON objects, one a line: one `session`, then `caption`, `health` and `error` in the order they
happened, then one `end` (absent when the program was killed). Every line carries `type` and `schema_version`.
Times are seconds on the session clock. This module knows neither app nor engine, so that both may import it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from engine.files import why

SCHEMA_VERSION: Final = 1


class LogError(Exception):
    """A log that does not follow the schema; the message is one sentence with the line number."""


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    schema_version: Literal[1] = SCHEMA_VERSION


class SessionLine(_Line):
    """What ran. `capture_mode` names how attention rows are captured; `policy` holds the preset's policy values.

    `info`: whatever else the engine says of itself when it is ready (recogniser, seam, self-test, load time, …).
    """

    type: Literal["session"] = "session"
    preset: str
    source_lang: str
    target_lang: str
    model: str
    head_set: str
    policy: dict[str, Any]
    capture_mode: str
    versions: dict[str, str]
    info: dict[str, Any] = Field(default_factory=dict)


class Token(_Line):
    """One draft token. The four masses are probabilities; null where the row was missing or not finite.

    `unit`: index of the source unit with the most mass; `suffix`: mass on earlier target; `row`: mass of each unit.
    """

    schema_version: Literal[1] = Field(default=SCHEMA_VERSION, exclude=True)
    text: str
    released: bool
    unit: int | None
    accessible: float | None
    inaccessible: float | None
    prompt: float | None
    suffix: float | None
    reason: str
    row: tuple[float | None, ...] = ()


class CaptionLine(_Line):
    """The state of one utterance, cumulative. `seq` counts the captions of a log from 0 without a hole.

    `start_s`, `end_s`: the span of the utterance's words so far. `audio_s`: end of the newest source word the caption
    was made from. `clock_s`: audio the recogniser had taken into account. `emitted_s`: session time when it was made.
    `lag_s`: `emitted_s` minus the end of the newest source word whose translation is stable, null before any is. It
    is the delay of that word's translation where the caption's stable text has grown, and only older where it has not.
    `stages`: milliseconds by stage. `tokens`: only when the session was traced.
    """

    type: Literal["caption"] = "caption"
    seq: int = Field(ge=0)
    utterance_id: int = Field(ge=0)
    stable: str
    held: str
    source_stable: str
    source_tail: str
    covered_source_units: int | None = Field(ge=0)
    final: bool
    reason: str
    start_s: float | None = None
    end_s: float | None = None
    audio_s: float
    clock_s: float | None = None
    emitted_s: float
    lag_s: float | None
    stages: dict[str, float]
    tokens: tuple[Token, ...] | None = None


class HealthLine(_Line):
    """A component's health changed: `state` is "ok", "note" or a named degraded state."""

    type: Literal["health"] = "health"
    component: str
    state: str
    text: str
    counters: dict[str, int] = Field(default_factory=dict)


class ErrorLine(_Line):
    """Something failed; `fatal` when the engine went away."""

    type: Literal["error"] = "error"
    code: str
    message: str
    fatal: bool


class EndLine(_Line):
    """The session ended: `audio_s` of audio took `wall_s` of wall-clock time. What went wrong is an `error` before."""

    type: Literal["end"] = "end"
    audio_s: float = Field(ge=0)
    wall_s: float = Field(ge=0)


LogLine = Annotated[
    SessionLine | CaptionLine | HealthLine | ErrorLine | EndLine,
    Field(discriminator="type"),
]
_ADAPTER: TypeAdapter[LogLine] = TypeAdapter(LogLine)


def log_line_to_json(line: LogLine) -> str:
    """One line of a log, without the line break."""
    data = line.model_dump(mode="json")
    if isinstance(line, CaptionLine) and line.tokens is None:
        del data["tokens"]
    for token in data.get("tokens", ()):
        if not token["row"]:
            del token["row"]
    ordered = {"type": data.pop("type"), "schema_version": data.pop("schema_version"), **data}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def read_log(path: Path, *, append_only: bool = True) -> list[LogLine]:
    """Read and validate a whole log. Raises `LogError`.

    `append_only`: refuse a log in which stable text was changed; evaluation counts such changes instead.
    A last line without its line break is the mark of a killed writer: when it is half a line, it is left out.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LogError(f"The session log {path} cannot be read: {why(error)}.") from error
    rows = text.split("\n")
    if rows and not _is_json(rows[-1]):
        rows.pop()
    return list(validate_log(rows, str(path), append_only=append_only))


def validate_log(rows: Iterable[str], where: str, *, append_only: bool = True) -> Iterator[LogLine]:
    """Yield the lines of a log, checked one by one and in their order. Raises `LogError`."""
    stable: dict[int, str] = {}
    seq, ended, number = 0, False, 0
    for number, row in enumerate(rows, start=1):
        place = f"Session log {where}, line {number}"
        if ended:
            raise LogError(f"{place}: nothing may follow the 'end' line.")
        line = _parse(row, place)
        if (number == 1) != isinstance(line, SessionLine):
            raise LogError(f"{place}: a log has one 'session' line and begins with it.")
        if isinstance(line, CaptionLine):
            if line.seq != seq:
                raise LogError(f"{place}: caption {line.seq} where {seq} was expected.")
            if append_only and not line.stable.startswith(stable.get(line.utterance_id, "")):
                raise LogError(f"{place}: stable text of utterance {line.utterance_id} was changed.")
            stable[line.utterance_id], seq = line.stable, seq + 1
        ended = isinstance(line, EndLine)
        yield line
    if number == 0:
        raise LogError(f"Session log {where} is empty.")


def _parse(row: str, place: str) -> LogLine:
    try:
        data = json.loads(row)
    except ValueError as error:
        raise LogError(f"{place} is not JSON: {error}.") from error
    if not isinstance(data, dict) or "schema_version" not in data:
        raise LogError(f"{place} lacks 'schema_version'.")
    if data["schema_version"] != SCHEMA_VERSION:
        raise LogError(f"{place} has schema version {data['schema_version']}; this program reads {SCHEMA_VERSION}.")
    try:
        return _ADAPTER.validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise LogError(f"{place}: {first['msg']} at '{field}'.") from error


def _is_json(row: str) -> bool:
    try:
        json.loads(row)
    except ValueError:
        return False
    return True
