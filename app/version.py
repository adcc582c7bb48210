"""What exactly is running: version, commit, and the libraries of window and engine."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.presets import resources

GIT_S = 5.0
_ROOT = Path(__file__).resolve().parents[1]


def program_version() -> str:
    """The version, which stands in `engine/__init__.py` and in nothing else."""
    try:
        return version("surtitle")
    except PackageNotFoundError:
        return "(not installed)"


def commit() -> str:
    """The commit it was built from; that of the checkout where it runs in one; "" where nobody knows.

    "-dirty" behind it: with changes that are in no commit.
    """
    built = resources() / "COMMIT"
    if built.is_file():
        return built.read_text(encoding="ascii").strip()
    if not (_ROOT / ".git").exists():
        return ""
    words = ["git", "-C", str(_ROOT), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        asked = subprocess.run(words, capture_output=True, text=True, timeout=GIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.strip() if asked.returncode == 0 else ""


def program_line() -> str:
    """Version and commit in one line."""
    known = commit()
    return f"surtitle {program_version()}" + (f" (commit {known})" if known else "")


def window_line() -> str:
    """Versions of what the window stands on."""
    try:
        qt = f"PySide6 {version('PySide6-Essentials')}"
    except PackageNotFoundError:
        qt = "no Qt"
    return f"Python {platform.python_version()}, {qt}"
