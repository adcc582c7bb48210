"""Files that are whole or absent, and what is wrong with one in a few words."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def why(error: Exception) -> str:
    """What went wrong with a file, without number and path: the end of a sentence."""
    if isinstance(error, UnicodeDecodeError):
        return "it is no text in UTF-8"
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return str(error).rstrip(".")


def write_atomically(path: Path, text: str) -> None:
    """Write a text file under a temporary name and move it into place. Raises `OSError`; the old file then stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
