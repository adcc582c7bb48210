"""What one start of the program was asked to do; `surtitle` makes it, window and terminal carry it out."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.errors import UserError
from app.export.writer import check_path
from app.files import is_being_written, reason
from app.microphone import MicrophoneSource
from app.playback import FileSource
from app.settings import Settings
from app.source import Source
from engine.messages import Configure
from engine.presets import PresetError, load_preset


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`file` is played; without one the `microphone` of that name is recorded (None: the default one).

    `microphone_required`: it is an error when that one is not there; otherwise another is taken and said.
    `exports` are written when a session ends, `what` ("source", "target", "both") being in them. `log_kept`: false for
    a log that is deleted in the end, so that nobody is sent to it. `overrides` are dotted preset keys. `autostart`:
    begin at once and, with a file, leave when it has ended.
    """

    preset: str = "laptop"
    source_lang: str = "en"
    target_lang: str = "de"
    file: Path | None = None
    microphone: str | None = None
    microphone_required: bool = True
    fast: bool = False
    exports: tuple[Path, ...] = ()
    what: str = "target"
    log: Path | None = None
    log_kept: bool = True
    trace: bool = False
    context: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    autostart: bool = False

    def configure(self) -> Configure:
        """The command that loads the models."""
        return Configure(
            self.preset, self.source_lang, self.target_lang, self.context, dict(self.overrides), self.trace
        )

    def make_source(self) -> Source:
        """A new source for a session."""
        if self.file is not None:
            return FileSource(self.file, fast=self.fast)
        return MicrophoneSource(self.microphone, required=self.microphone_required)

    def check(self) -> None:
        """See that nothing is wrong before anything is loaded.

        Raises `UserError`; makes the folders of exports.
        """
        try:
            load_preset(self.preset, self.overrides).check_pair(self.source_lang, self.target_lang)
        except PresetError as error:
            raise UserError(str(error)) from error
        if self.file is not None:
            self.make_source().check()
        for path in self.exports:
            check_path(path)
        for path in (*self.exports, *([self.log] if self.log else [])):
            check_writable(path)
        if self.log is not None and self.log.is_dir():
            raise UserError(f"The session log cannot be written to '{self.log}': it is a folder.")
        if self.log is not None and is_being_written(self.log):
            raise UserError(f"The session log '{self.log}' is being written by another Surtitle: name another file.")


def overrides_of(settings: Settings, preset_id: str) -> dict[str, Any]:
    """What the settings change in a preset: own models where they fit its kinds, the server of a remote one. Raises
    `PresetError`.
    """
    preset = load_preset(preset_id)
    wanted = {
        "recogniser.model": settings.models.get("recogniser.model", "") * (preset.recogniser.kind == "whisper"),
        "translator.model": settings.models.get("translator.model", "") * (preset.translator.kind == "llamacpp"),
        "translator.url": settings.server * (preset.translator.kind == "remote"),
        "translator.token_file": settings.token_file * (preset.translator.kind == "remote"),
    }
    return {key: value for key, value in wanted.items() if value}


def check_writable(path: Path) -> None:
    """See that a file can be written, and make its folder. Raises `UserError`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"'{path}' cannot be written: its folder cannot be made ({reason(error)}).") from error
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UserError(f"'{path}' cannot be written: permission denied; choose another place.")
