"""The app's own log: a rotating file; every module logs below `app`."""

from __future__ import annotations

import logging
import sys
from logging.handlers import RotatingFileHandler
from pathlib import Path

from app.files import log_folder, reason

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def log_file() -> Path:
    """The file of the app's log."""
    return log_folder() / "app.log"


def start_logging(verbose: bool) -> str | None:
    """Log to the file (2 files of 1 MB), with `verbose` in detail and to stderr too.

    A sentence when it cannot be.
    """
    stop_logging()
    root = logging.getLogger("app")
    root.setLevel(logging.DEBUG if verbose else logging.INFO)
    if verbose:
        _add(root, logging.StreamHandler(sys.stderr))
    try:
        log_folder().mkdir(parents=True, exist_ok=True)
        _add(root, RotatingFileHandler(log_file(), maxBytes=1_000_000, backupCount=1, encoding="utf-8"))
    except OSError as error:
        if not verbose:
            _add(root, logging.NullHandler())
        return f"The log {log_file()} cannot be written ({reason(error)}): there will be none."
    return None


def stop_logging() -> None:
    """Close what `start_logging` opened."""
    root = logging.getLogger("app")
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        handler.close()


def _add(root: logging.Logger, handler: logging.Handler) -> None:
    handler.setFormatter(logging.Formatter(_FORMAT))
    root.addHandler(handler)
