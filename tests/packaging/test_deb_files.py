"""What goes into the Debian package beside the program. `make test-packages` builds and installs it."""

from __future__ import annotations

import configparser
import importlib.util
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DEB = ROOT / "packaging" / "deb"


@pytest.fixture(scope="module")
def build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deb_build", DEB / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look themselves up there
    spec.loader.exec_module(module)
    return module


def test_it_depends_on_what_make_demo_installs(build: ModuleType) -> None:
    libraries = build.libraries()
    assert "libportaudio2" in libraries
    assert "libglib2.0-0t64 | libglib2.0-0" in libraries
    assert not any("g++" in name or "python" in name for name in libraries)


def test_files_of_the_desktop(build: ModuleType, tmp_path: Path) -> None:
    build.desktop(tmp_path, "1.2.3")
    share = tmp_path / "usr" / "share"
    entry = configparser.ConfigParser(interpolation=None)
    entry.read(share / "applications" / "surtitle.desktop", encoding="utf-8")
    assert entry["Desktop Entry"]["Exec"] == "surtitle"
    assert (share / "icons/hicolor/scalable/apps" / f"{entry['Desktop Entry']['Icon']}.svg").is_file()
    component = ElementTree.parse(share / "metainfo" / "surtitle.metainfo.xml").getroot()
    release = component.find("releases/release")
    assert release is not None
    assert release.get("version") == "1.2.3"
    assert (tmp_path / "usr/bin/surtitle").stat().st_mode & 0o111
    assert (share / "doc/surtitle/NOTICES.md").is_file()
    if shutil.which("appstreamcli"):
        words = ["appstreamcli", "validate", "--no-net", share / "metainfo" / "surtitle.metainfo.xml"]
        told = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout
        assert not [line for line in told.splitlines() if line.startswith("E:")]
    if shutil.which("desktop-file-validate"):
        subprocess.run(["desktop-file-validate", share / "applications" / "surtitle.desktop"], timeout=60, check=True)


def test_what_is_left_out_of_qt_is_nothing_that_the_program_imports(build: ModuleType) -> None:
    used = {"QtCore", "QtGui", "QtWidgets", "QtNetwork", "QtSvg"}
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "app").rglob("*.py"))
    imported = {line.split()[1].split(".")[1] for line in text.splitlines() if line.startswith("from PySide6.Qt")}
    assert imported <= used
    for module in used:
        for pattern in build.UNUSED:
            assert not Path(f"{module}.abi3.so").match(pattern), pattern


def test_another_python_is_one_sentence(build: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "SYSTEM_PYTHON", "/bin/echo")
    with pytest.raises(build.BuildError, match="bound to the system's Python"):
        build.check_machine()
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(build.BuildError, match="dpkg-deb is not here"):
        build.check_machine()
