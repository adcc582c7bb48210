"""What `make release` and `make test-packages` refuse before they take minutes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As much of a checkout as is looked at first."""
    for name in ("packaging/release.sh", "packaging/test-deb.sh", "packaging/system-packages.sh", "engine/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(*words: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, check=False)


def test_a_version_without_its_section_of_the_changelog(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [0.0.1] - 2026-01-01\n", encoding="utf-8")
    done = run(checkout / "packaging" / "release.sh", sys.executable)
    assert done.returncode == 2
    assert done.stderr.startswith("CHANGELOG.md has no section for ")
    assert done.stderr.count("\n") == 1
    assert not (checkout / "dist").exists()


def test_no_package_to_try(checkout: Path) -> None:
    done = run(checkout / "packaging" / "test-deb.sh")
    assert done.returncode != 0
    assert "usage: " in done.stderr
    assert not (checkout / "build").exists()


def test_packages_of_the_system_are_asked_for_by_purpose(checkout: Path) -> None:
    done = run(checkout / "packaging" / "system-packages.sh", "everything")
    assert done.returncode == 2
    assert "run|test|packages" in done.stderr
