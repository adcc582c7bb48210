"""Writes the commit that a wheel or source archive is made from into its resources, for `surtitle --version`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NAME = "COMMIT"


class CommitHook(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Without git, and outside a repository, there is nothing to write; a source archive brings the file with it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version == "editable" or (root / "resources" / NAME).exists() or not (root / ".git").exists():
            return
        asked = subprocess.run(
            ["git", "-C", self.root, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"],
            capture_output=True,
            text=True,
            check=False,
        )
        if asked.returncode == 0:
            self._folder = tempfile.TemporaryDirectory()
            made = Path(self._folder.name) / NAME
            made.write_text(asked.stdout, encoding="ascii")
            inside = "resources" if self.target_name == "sdist" else "engine/resources"
            build_data["force_include"][str(made)] = f"{inside}/{NAME}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if folder := getattr(self, "_folder", None):
            folder.cleanup()
