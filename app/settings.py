"""What the program remembers between starts: validated when read, replaced as a whole when saved."""

from __future__ import annotations

import json
import logging
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.files import reason, replace_file
from app.window_settings import WindowSettings

log = logging.getLogger(__name__)


class Settings(BaseModel):
    """`microphone`: the key of an input device, or None for the default one. Keys that are not known are kept."""

    model_config = ConfigDict(extra="allow", validate_assignment=True)

    preset: str = "laptop"
    source_lang: str = "en"
    target_lang: str = "de"
    microphone: str | None = None
    window: WindowSettings = Field(default_factory=WindowSettings)


def load_settings(path: Path) -> tuple[Settings, str | None]:
    """The settings, and one sentence when the file was of no use: it is then kept aside and defaults are taken."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Settings.model_validate(data), None
    except FileNotFoundError:
        return Settings(), None
    except OSError as error:
        return Settings(), f"The settings {path} cannot be read ({reason(error)}): defaults are used."
    except (ValueError, ValidationError) as error:
        log.warning("The settings %s are damaged: %s", path, error)
        aside = path.with_suffix(".damaged")
        try:
            path.replace(aside)
        except OSError:
            return Settings(), f"The settings {path} are damaged: defaults are used."
        return Settings(), f"The settings were damaged and are kept as {aside}: defaults are used."


def save_settings(settings: Settings, path: Path) -> str | None:
    """Replace the file; one sentence when that failed."""
    try:
        replace_file(path, settings.model_dump_json(indent=2) + "\n")
    except OSError as error:
        return f"The settings {path} cannot be saved ({reason(error)})."
    return None
