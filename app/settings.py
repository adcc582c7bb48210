"""What the program remembers between starts: validated when read, replaced as a whole when saved."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from app.files import reason, replace_file
from app.observe import Notifier
from app.window_settings import Mended, WindowSettings

log = logging.getLogger(__name__)

CONTEXT_LENGTH = 2000  # characters about the talk; more would crowd the sentence out of the model's context
PATH_LENGTH = 4096
MEASURED_KEPT = 50  # presets whose speed is remembered


class Speed(BaseModel):
    """How a preset ran here the last time. `real_time_factor`: CPU seconds of the engine for each second of sound;
    `lag_s`: stable text behind the voice, on average.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    real_time_factor: float = Field(ge=0)
    lag_s: float = Field(ge=0)


class ExportSettings(Mended):
    """What the export dialog offers first. `folder`: "" is the person's documents; `columns` of a subtitle line."""

    format: Literal[".txt", ".srt", ".vtt", ".jsonl", ".docx"] = ".srt"
    what: Literal["source", "target", "both"] = "target"
    columns: int = Field(default=42, ge=20, le=80)
    byte_order_mark: bool = False
    folder: str = Field(default="", max_length=PATH_LENGTH)


class Settings(BaseModel):
    """`microphone`: the key of an input device, or None for the default one. `licences`: those that were accepted.

    `context`: what the talk is about, for the translator. `models`: own weights in place of a preset's, by preset key
    ("recogniser.model") and path. `server` and `token_file`: where another machine translates, and what it wants to
    see. `speeds`: by preset. Keys that are not known are kept.
    """

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    preset: str = "laptop"
    source_lang: str = "en"
    target_lang: str = "de"
    context: str = ""
    microphone: str | None = None
    licences: tuple[str, ...] = ()
    models: dict[str, str] = Field(default_factory=dict)
    server: str = ""
    token_file: str = ""
    speeds: dict[str, Speed] = Field(default_factory=dict)
    export: ExportSettings = Field(default_factory=ExportSettings)
    window: WindowSettings = Field(default_factory=WindowSettings)

    @field_validator("context")
    @classmethod
    def _short(cls, value: str) -> str:
        return value[:CONTEXT_LENGTH]

    @field_validator("speeds", mode="before")
    @classmethod
    def _sound(cls, value: Any) -> Any:
        """A measurement that cannot be read costs only itself."""
        found = {}
        for preset, speed in list(value.items())[-MEASURED_KEPT:] if isinstance(value, dict) else ():
            try:
                found[preset] = Speed.model_validate(speed)
            except ValidationError:
                log.warning("The measured speed of '%s' cannot be %.80r.", preset, speed)
        return found


def load_settings(path: Path) -> tuple[Settings, str | None]:
    """The settings, and one sentence when the file was of no use: it is then kept aside and defaults are taken."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Settings.model_validate(data), None
    except FileNotFoundError:
        return Settings(), None
    except OSError as error:
        return Settings(), f"The settings {path} cannot be read ({reason(error)}): defaults are used."
    except (ValueError, ValidationError, RecursionError) as error:
        log.warning("The settings %s are damaged: %s", path, error)
        aside = next(name for name in _asides(path) if not name.exists())
        try:
            path.replace(aside)
        except OSError:
            return Settings(), f"The settings {path} are damaged: defaults are used."
        return Settings(), f"The settings were damaged and are kept as {aside}: defaults are used."


def _asides(path: Path) -> Iterator[Path]:
    """Names to keep a damaged file under, so that an earlier one is not lost."""
    yield path.with_suffix(".damaged")
    for number in itertools.count(2):
        yield path.with_suffix(f".damaged-{number}")


def save_settings(settings: Settings, path: Path) -> str | None:
    """Replace the file; one sentence when that failed."""
    try:
        replace_file(path, settings.model_dump_json(indent=2) + "\n")
    except OSError as error:
        return f"The settings {path} cannot be saved ({reason(error)})."
    return None


class SettingsStore:
    """The settings of the running program. `changed` tells of every change, `problem` of a file that cannot be saved.

    Without a path (a run with options of its own) nothing is written.
    """

    def __init__(self, settings: Settings, path: Path | None) -> None:
        self.value = settings
        self.changed: Notifier[Settings] = Notifier()
        self.problem: Notifier[str] = Notifier()
        self._path = path

    def update(self, **values: Any) -> None:
        """Change some of the settings and save all. Raises `ValidationError` for a value that cannot be."""
        changed = self.value.model_copy(deep=True)
        for name, value in values.items():
            setattr(changed, name, value)
        if changed == self.value:
            return
        self.value = changed
        if self._path is not None:
            problem = save_settings(changed, self._path)
            if problem:
                log.warning("%s", problem)
            self.problem.emit(problem or "")
        self.changed.emit(changed)
