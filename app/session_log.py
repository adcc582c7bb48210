"""Recorder of the session log, one JSON object a line. Its schema and validator: `engine.schemas`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from app.controller import Recorded, SessionBegan, SessionEnded
from app.errors import UserError
from app.files import AppendFile
from engine.messages import Caption, Error, Health, Stopped
from engine.schemas import (
    CaptionLine,
    EndLine,
    ErrorLine,
    HealthLine,
    LogLine,
    SessionLine,
    Token,
    log_line_to_json,
)

_PINNED = ("model", "head_set", "policy", "capture_mode", "versions")


class LogProblem(UserError):
    """The session log cannot be written; one sentence."""


class SessionLog:
    """Writes `path` for the first session it hears of, and `<name>-2`, `<name>-3`, … for those that follow.

    When the disk fails, lines wait in memory, and `event` raises a `LogProblem` as long as that lasts.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sessions = 0
        self._seq = 0
        self._stopped = False
        self._file: AppendFile | None = None

    def event(self, event: Recorded) -> None:
        """Take what the controller tells. Raises `LogProblem`."""
        if isinstance(event, SessionBegan):
            self._begin(event)
        elif self._file is None:
            return
        elif isinstance(event, SessionEnded):
            self._end(event)
        elif isinstance(event, Stopped):
            self._stopped = True
        elif line := self._line(event):
            self._add(line)
        self._tell()

    def close(self) -> None:
        """Close a log whose session did not end; it then has no `end` line."""
        file, self._file = self._file, None
        if file:
            file.close()
            if file.problem:
                raise LogProblem(file.problem)

    def _begin(self, event: SessionBegan) -> None:
        self.close()
        self._sessions += 1
        self._seq, self._stopped = 0, False
        if self._sessions > 1:
            self.path = self.path.with_stem(f"{self.path.stem.removesuffix(f'-{self._sessions - 1}')}-{self._sessions}")
        self._file = AppendFile(self.path, "session log")
        info = event.info
        self._add(
            SessionLine(
                preset=event.preset,
                source_lang=event.source_lang,
                target_lang=event.target_lang,
                model=str(info.get("model", "")),
                head_set=str(info.get("head_set", "")),
                policy=dict(info.get("policy", {})),
                capture_mode=str(info.get("capture_mode", "")),
                versions={str(name): str(number) for name, number in info.get("versions", {}).items()},
                info={key: value for key, value in info.items() if key not in _PINNED},
            )
        )

    def _end(self, event: SessionEnded) -> None:
        if event.reason:
            # Without `Stopped` it was the engine that ended; with it only the source was lost.
            code = "source_lost" if self._stopped else "engine_died"
            self._add(ErrorLine(code=code, message=event.reason, fatal=not self._stopped))
        self._add(EndLine(audio_s=max(0.0, event.audio_s), wall_s=max(0.0, event.wall_s)))
        self.close()

    def _line(self, event: Recorded) -> LogLine | None:
        match event:
            case Caption():
                self._seq += 1
                return caption_line(event, self._seq - 1)
            case Health():
                return HealthLine(
                    component=event.component, state=event.state, text=event.text, counters=dict(event.counters)
                )
            case Error():
                return ErrorLine(code=event.code, message=event.message, fatal=event.fatal)
        return None

    def _add(self, line: LogLine) -> None:
        if self._file:
            self._file.append(log_line_to_json(line))

    def _tell(self) -> None:
        if self._file and self._file.problem:
            raise LogProblem(self._file.problem)


def caption_line(event: Caption, seq: int) -> CaptionLine:
    """A caption as a line of the log. Numbers that are not finite become null or 0, since JSON has none."""
    lag_s = None if event.covered_s is None else _finite(event.emitted_s - event.covered_s)
    return CaptionLine(
        seq=seq,
        utterance_id=event.utterance_id,
        stable=event.stable,
        held=event.held,
        source_stable=event.source_stable,
        source_tail=event.source_tail,
        covered_source_units=event.covered_source_units,
        final=event.final,
        reason=event.reason,
        start_s=_finite(event.start_s),
        end_s=_finite(event.end_s),
        audio_s=_finite(event.audio_s) or 0.0,
        clock_s=_finite(event.clock_s),
        emitted_s=_finite(event.emitted_s) or 0.0,
        lag_s=lag_s,
        stages={name: _finite(value) or 0.0 for name, value in event.stages.items()},
        tokens=tuple(_token(token) for token in event.tokens) or None,
    )


def _token(token: dict[str, Any]) -> Token:
    masses = {name: _finite(token[name]) for name in ("accessible", "inaccessible", "prompt", "suffix")}
    row = tuple(_finite(mass) for mass in token.get("row", ()))
    kept = {name: token[name] for name in ("text", "released", "unit", "reason")}
    return Token(**kept, **masses, row=row)


def _finite(value: float | None) -> float | None:
    return round(value, 4) if value is not None and math.isfinite(value) else None
