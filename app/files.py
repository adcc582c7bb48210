"""Where the program keeps its files, and the two ways it writes them: replaced as a whole, or appended line by line."""

from __future__ import annotations

import logging
import os
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import platformdirs

APP = "surtitle"
log = logging.getLogger(__name__)


def sessions_folder() -> Path:
    """The folder of the session journals."""
    return Path(platformdirs.user_data_dir(APP, appauthor=False)) / "sessions"


def log_folder() -> Path:
    """The folder of the program's own log."""
    return Path(platformdirs.user_log_dir(APP, appauthor=False))


def settings_file() -> Path:
    """The settings file."""
    return Path(platformdirs.user_config_dir(APP, appauthor=False)) / "settings.json"


def reason(error: OSError) -> str:
    """The operating system's words for what went wrong, without number and path."""
    return (error.strerror or type(error).__name__).lower()


def replace_file(path: Path, text: str | bytes) -> None:
    """Write a file (text as UTF-8) under a temporary name beside it and move it into place.

    Makes the folder. Raises `OSError`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{uuid.uuid4().hex[:12]}.part")
    try:
        with part.open("xb") as file:
            file.write(text.encode("utf-8") if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            part.chmod(path.stat().st_mode & 0o777)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


class AppendFile:
    """A file of lines that only grows; what cannot be written yet is kept in memory and tried again with the next line.

    Every line is handed to the operating system before `append` returns, so a killed process loses none;
    lines with `sync` are also forced to the disk, by a thread of their own because that may take a tenth of a
    second. While it is open the file is locked, which is how others know that its writer is alive.
    """

    def __init__(self, path: Path, what: str) -> None:
        """`what` names the file in sentences.

        `problem`: one sentence while it cannot be written, else None.
        """
        self.path = path
        self.problem: str | None = None
        self.closed = False
        self._what = what
        self._fd: int | None = None
        self._pending = bytearray()
        self._why = ""
        self._syncer: ThreadPoolExecutor | None = None

    def append(self, line: str, sync: bool = False) -> None:
        """Add one line (without its line break). Never raises `OSError`: see `problem`."""
        self._pending += line.encode("utf-8", errors="replace") + b"\n"
        if self._flush() and sync:
            self._syncer = self._syncer or ThreadPoolExecutor(1, thread_name_prefix="journal-sync")
            self._syncer.submit(self._sync)

    def close(self) -> None:
        """Write what is left and close; `problem` says so when lines had to be left out."""
        if self._pending and not self._flush():
            self.problem = f"The {self._what} {self.path} is incomplete: {self._why}."
        if self._syncer is not None:
            self._syncer.shutdown(wait=True)
            self._syncer = None
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        self.closed = True

    def _flush(self) -> bool:
        try:
            if self._fd is None:
                self._fd = self._open()
            while self._pending:
                del self._pending[: os.write(self._fd, self._pending)]
        except OSError as error:
            self._failed(error)
            return False
        if self.problem:
            log.info("The %s %s can be written again.", self._what, self.path)
            self.problem = None
        return True

    def _failed(self, error: OSError) -> None:
        self._why = reason(error)
        if self.problem is None:
            log.warning("The %s %s cannot be written: %s", self._what, self.path, error)
        self.problem = (
            f"The {self._what} {self.path} cannot be written ({self._why}): it is kept in memory and tried again."
        )

    def _open(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        if sys.platform != "win32":
            import fcntl

            with suppress(OSError):  # some network file systems have no locks
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return fd

    def _sync(self) -> None:
        """Force the file to the disk; a failure is only logged, since the next write meets it again."""
        try:
            if self._fd is not None:
                os.fsync(self._fd)
        except OSError as error:
            log.warning("The %s %s could not be forced to the disk: %s", self._what, self.path, error)


def add_line(path: Path, line: str) -> None:
    """Add a line to a finished file of lines; one that was cut off inside a line is given its line break first. Raises
    `OSError`, and `BlockingIOError` while a living process writes the file.
    """
    if is_being_written(path):
        raise BlockingIOError(f"{path} is being written")
    with path.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            whole = file.read(1) == b"\n"
        else:
            whole = True
        file.write((b"" if whole else b"\n") + line.encode("utf-8", errors="replace") + b"\n")
        file.flush()
        os.fsync(file.fileno())


def is_being_written(path: Path) -> bool:
    """Whether an `AppendFile` of a living process holds this file. False where the platform has no locks."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False
