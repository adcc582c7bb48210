"""Wheel and source archive: what is in them, and that the wheel alone is the program."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from engine import __version__

ROOT = Path(__file__).parents[2]
LEFT_OUT = ("resources/screenshots/", "resources/training/")
NOT_SOURCE = {"__pycache__", "COMMIT"}


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both, built as `make release` builds them."""
    folder = tmp_path_factory.mktemp("dist")
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    return dist / f"surtitle-{__version__}-py3-none-any.whl"


def tracked(*rooms: str) -> set[str]:
    """Files of the rooms, as paths below the checkout."""
    found = (path for room in rooms for path in (ROOT / room).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in found if not NOT_SOURCE & set(path.parts)}


def test_the_wheel_is_the_program_with_its_resources_and_licences(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    info = f"surtitle-{__version__}.dist-info"
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/resources/NOTICES.md"} <= names
    inside = {name for name in names if not name.startswith(info)} - {"engine/resources/COMMIT"}
    resources = {name for name in tracked("resources") if not name.startswith(LEFT_OUT)}
    assert inside == tracked("app", "engine") | {f"engine/{name}" for name in resources}
    assert any(name.startswith("engine/resources/recordings/") for name in inside)


def test_the_source_archive_has_everything(dist: Path) -> None:
    with tarfile.open(dist / f"surtitle-{__version__}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    rooms = tracked("app", "engine", "resources", "packaging", "tests")
    assert {"Makefile", "README.md", "LICENSE", "CHANGELOG.md", "pyproject.toml"} | rooms <= names


def test_the_wheel_alone_runs_and_knows_its_commit(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")

    def surtitle(*words: str) -> subprocess.CompletedProcess[str]:
        folders = {f"XDG_{name}_HOME": str(tmp_path / name) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
        return subprocess.run(
            [sys.executable, "-P", "-m", "app.cli", *words],
            env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **folders},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )

    said = surtitle("--version").stdout.splitlines()
    commit = r" \(commit [0-9a-f]{7,}(-dirty)?\)" if (ROOT / ".git").exists() else ".*"
    assert re.fullmatch(rf"surtitle {re.escape(__version__)}{commit}", said[0])
    assert (tmp_path / "site" / "engine" / "resources" / "NOTICES.md").is_file()
    assert "laptop" in surtitle("run", "--preset", "none", "--headless").stderr
    lacking = surtitle("benchmark", "translator", "--variants", "base", "--sets", "set-aside")
    assert lacking.returncode == 2
    assert "an installed program has not" in lacking.stderr
