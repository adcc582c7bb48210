"""Where the engine's log goes: a rotating file beside the app's, one named logger per area below `surtitle`."""

from __future__ import annotations

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

from platformdirs import user_log_path


def log_to_file(name: str, level: int = logging.INFO) -> Path | None:
    """Send everything below `surtitle` to `<user log folder>/<name>.log` (2 files of 1 MB).

    None when the folder cannot be written: then warnings go to stderr, and the engine runs on.
    """
    root = logging.getLogger("surtitle")
    root.setLevel(level)
    path = user_log_path("surtitle", appauthor=False) / f"{name}.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(path, maxBytes=1_000_000, backupCount=1, encoding="utf-8")
    except OSError as error:
        root.warning(
            "The log %s cannot be written (%s): there will be none.", path, (error.strerror or str(error)).lower()
        )
        return None
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(threadName)s: %(message)s"))
    root.addHandler(handler)
    return path
