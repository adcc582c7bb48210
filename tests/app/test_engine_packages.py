"""The first start of a packaged program: all or nothing, and one sentence. pip is a script; the rest is real."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app import cli, command_line, engine_packages
from app.commands import setup
from app.engine_packages import Bundle, Cancelled, check, find_bundle, install, plan, remove, use
from app.errors import UserError
from app.widgets.first_start_dialog import FirstStartDialog
from tests.app.leaks import throw_away

HERE = f"cp{sys.version_info[0]}{sys.version_info[1]}"
MACHINE = os.uname().machine
# `python -m pip download …` writes what the folder `index` holds; `install` copies the files into the target.
PIP = """
import pathlib, shutil, sys, time
index = pathlib.Path(__file__).parents[2] / "index"
words = sys.argv[1:]
kind = next(word for word in words if word in ("download", "install"))
if (says := index / f"{kind}.fails").exists():
    sys.exit(says.read_text())
if (index / "slow").exists():
    time.sleep(60)
if kind == "download":
    name = pathlib.Path(words[words.index("--requirement") + 1]).read_text().split("==")[0]
    target = pathlib.Path(words[words.index("--dest") + 1])
    target.mkdir(exist_ok=True)
    shutil.copy(index / f"{name}-1-py3-none-any.whl", target)
else:
    target = pathlib.Path(words[words.index("--target") + 1])
    for path in map(pathlib.Path, words):
        if path.suffix == ".whl":
            (target / path.name.split("-")[0]).mkdir(parents=True)
            (target / path.name.split("-")[0] / "__init__.py").write_text("")
"""
ENGINE = ("faster_whisper", "llama_cpp", "onnxruntime")


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """A packaged program whose engine are three empty packages, and an index that has them."""
    folder, index = tmp_path / "surtitle_engine", tmp_path / "index"
    (folder / "pip" / "pip").mkdir(parents=True)
    index.mkdir()
    (folder / "pip" / "pip" / "__init__.py").touch()
    (folder / "pip" / "pip" / "__main__.py").write_text(PIP.replace("parents[2]", "parents[3]"), encoding="utf-8")
    wheels = []
    for name in ENGINE:
        data = name.encode() * 1000
        file = f"{name}-1-py3-none-any.whl"
        (index / file).write_bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        wheels.append(
            {"requirement": f"{name}==1", "file": file, "sha256": digest, "size": len(data), "unpacked": len(data)}
        )
    told = {"version": "1.0", "python": HERE, "machine": MACHINE, "cpu_flags": [], "later_bytes": 1000}
    (folder / "packages.json").write_text(json.dumps({**told, "wheels": wheels}), encoding="utf-8")
    monkeypatch.setattr(engine_packages, "POLL_S", 0.02)
    found = find_bundle(folder)
    assert found is not None
    return found


def quiet(fraction: float, text: str) -> None:
    assert 0 <= fraction <= 1
    assert text


def nothing_is_left(bundle: Bundle) -> None:
    assert not bundle.ready
    assert [path for path in bundle.home.iterdir() if path not in (bundle.downloads, bundle.home / ".lock")] == []


def test_installed_as_a_whole_and_used(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(bundle)[0].startswith("Download 3 files")
    told: list[tuple[float, str]] = []
    install(bundle, lambda fraction, text: told.append((fraction, text)))
    assert bundle.ready
    assert told[-1][0] == 1.0
    assert [fraction for fraction, _ in told] == sorted(fraction for fraction, _ in told)
    assert not bundle.downloads.exists()
    assert plan(bundle) == [f"The engine is installed in {bundle.target}."]
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    use(bundle)
    use(bundle)
    assert sys.path.count(str(bundle.target)) == 1
    assert os.environ["PYTHONPATH"] == f"/somewhere{os.pathsep}{bundle.target}"


def test_a_checkout_has_no_bundle_and_a_damaged_one_is_said(bundle: Bundle) -> None:
    assert find_bundle() is None
    (bundle.folder / "packages.json").write_text("{", encoding="utf-8")
    with pytest.raises(UserError, match="damaged"):
        find_bundle(bundle.folder)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("WARNING: Retrying after connection broken by NewConnectionError", r"stopped at .* of .* \(no network\)"),
        ("ERROR: [Errno 28] No space left on device", "disk became full"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES", "is not the file that this program was made with"),
        ("ERROR: something else", r"cannot be downloaded \(ERROR: something else\)"),
    ],
)
def test_a_download_that_fails_is_one_sentence_and_goes_on_later(bundle: Bundle, said: str, expected: str) -> None:
    index = bundle.folder.parent / "index"
    (index / "download.fails").write_text(said, encoding="utf-8")
    with pytest.raises(UserError, match=expected):
        install(bundle, quiet)
    nothing_is_left(bundle)
    (index / "download.fails").unlink()
    install(bundle, quiet)
    assert bundle.ready


def test_what_has_arrived_is_kept(bundle: Bundle) -> None:
    index = bundle.folder.parent / "index"
    second = index / bundle.wheels[1].file
    data = second.read_bytes()
    second.unlink()
    with pytest.raises(UserError, match="llama_cpp==1 cannot be downloaded"):
        install(bundle, quiet)
    assert [wheel.requirement for wheel in bundle.missing] == ["llama_cpp==1", "onnxruntime==1"]
    second.write_bytes(data)
    (index / bundle.wheels[0].file).unlink()  # not asked for again
    install(bundle, quiet)
    assert bundle.ready


def test_a_damaged_file_is_downloaded_anew(bundle: Bundle) -> None:
    bundle.downloads.mkdir(parents=True)
    (bundle.downloads / bundle.wheels[0].file).write_bytes(b"half")
    with pytest.raises(UserError, match="is damaged: start again"):
        install(bundle, quiet)
    nothing_is_left(bundle)
    install(bundle, quiet)
    assert bundle.ready


def test_an_engine_that_does_not_start_is_not_installed(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_packages, "_TRY", "raise ImportError('libsomething.so.1 is missing')")
    with pytest.raises(UserError, match=r"do not start here \(ImportError: libsomething"):
        install(bundle, quiet)
    nothing_is_left(bundle)


def test_cancelled(bundle: Bundle) -> None:
    (bundle.folder.parent / "index" / "slow").touch()
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(Cancelled, match="kept for the next time"):
        install(bundle, quiet, stop)
    nothing_is_left(bundle)


def changed(bundle: Bundle, **values: Any) -> Bundle:
    return Bundle(**{**{name: getattr(bundle, name) for name in Bundle.__dataclass_fields__}, **values})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"machine": "riscv64"}, "is for Linux on riscv64"),
        ({"python": "cp399"}, "is for Python 3.99"),
        ({"cpu_flags": ("avx2", "amx_tile")}, "lacks AMX_TILE"),
        ({"later_bytes": 10**15}, "needs 1000000.. GB of disk"),
    ],
)
def test_the_wrong_machine_is_told_before_anything_is_written(
    bundle: Bundle, values: dict[str, Any], expected: str
) -> None:
    with pytest.raises(UserError, match=expected):
        check(changed(bundle, **values), frozenset({"avx2"}))
    assert not bundle.home.exists()


def test_a_home_that_cannot_be_written(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle.home.parent.mkdir(parents=True, exist_ok=True)
    bundle.home.write_text("a file")
    with pytest.raises(UserError, match=r"cannot be installed into .*XDG_DATA_HOME"):
        install(bundle, quiet)
    bundle.home.unlink()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(UserError, match="permission denied"):
        check(bundle)


def test_two_at_a_time_and_two_versions_side_by_side(bundle: Bundle) -> None:
    with engine_packages._alone(bundle), pytest.raises(UserError, match="being installed already"):
        install(bundle, quiet)
    install(bundle, quiet)
    other = changed(bundle, wheels=bundle.wheels[::-1], version="2.0")
    assert other.key != bundle.key
    install(other, quiet)
    assert bundle.ready
    assert other.ready
    assert bundle.others == (other.target,)
    assert plan(bundle)[-1] == f"Of other versions there are {other.target}."
    assert remove(bundle) == sorted([bundle.target, other.target])
    assert not bundle.ready
    assert remove(bundle) == []


# ---------------------------------------------------------------- the command and the window


@pytest.fixture
def packaged(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> Bundle:
    """The program is a packaged one."""
    for module in (engine_packages, command_line):
        monkeypatch.setattr(module, "find_bundle", lambda folder=None: bundle)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", "")
    return bundle


def test_the_command(packaged: Bundle, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["setup", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("Download 3 files")
    assert not packaged.ready
    assert cli.main(["setup"]) == 0
    assert "Downloading llama_cpp" in capsys.readouterr().err
    assert packaged.ready
    assert cli.main(["setup", "--remove"]) == 0
    assert str(packaged.target) in capsys.readouterr().out


def test_a_checkout_says_where_its_engine_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["setup"]) == 2
    assert "surtitle[laptop]" in capsys.readouterr().err


def test_an_environment_for_the_gpu_takes_over_once_it_is_complete(
    packaged: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[Path, list[str]]] = []

    def execve(path: Path, words: list[str], env: dict[str, str]) -> None:
        assert "PYTHONPATH" not in env
        started.append((path, words))

    monkeypatch.setattr(os, "execve", execve)
    packaged.gpu.mkdir(parents=True)
    cli.main(["sessions"])
    assert started == []
    (packaged.gpu / ".surtitle-ready").touch()
    cli.main(["sessions"])
    python = packaged.gpu / "bin" / "python"
    assert started == [(python, [str(python), "-P", "-m", "app.cli", "sessions"])]
    cli.main(["setup", "--remove"])
    assert len(started) == 1
    assert not packaged.gpu.exists()


def test_a_gpu_environment_of_another_version_is_not_used_and_that_is_said(
    packaged: Bundle, capsys: pytest.CaptureFixture[str]
) -> None:
    install(packaged, quiet)
    setup.ensure_engine()
    assert capsys.readouterr().err == ""
    older = packaged.gpu.with_name("0.0.1")
    older.mkdir(parents=True)
    (older / ".surtitle-ready").touch()
    assert packaged.gpu_python is None
    setup.ensure_engine()
    assert "belongs to another version" in capsys.readouterr().err
    assert cli.main(["setup"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"The engine is installed in {packaged.target}.",
        f"Of other versions there are {older}.",
    ]


def test_the_gpu_script_is_given_what_the_package_holds(packaged: Bundle, capfd: pytest.CaptureFixture[str]) -> None:
    (packaged.folder / "surtitle-1.0-py3-none-any.whl").touch()
    script = packaged.folder / "setup-gpu.sh"
    script.write_text('#!/bin/sh\necho "$@"\nexit 3\n', encoding="utf-8")
    script.chmod(0o755)
    assert setup.run(SimpleNamespace(gpu=True, remove=False, dry_run=True)) == 3  # type: ignore[arg-type]
    said = capfd.readouterr().out
    assert "--dry-run --program" in said
    assert f"--env {packaged.gpu} --pip {packaged.folder / 'pip'}" in said


@pytest.fixture
def dialog(bundle: Bundle, qtbot: Any) -> Any:
    made = FirstStartDialog(bundle)
    made.show()
    qtbot.waitExposed(made)
    yield made
    throw_away(made)


def test_the_window_installs_and_closes(dialog: FirstStartDialog, bundle: Bundle, qtbot: Any) -> None:
    with qtbot.waitSignal(dialog.accepted, timeout=60_000):
        dialog.install.click()
    assert bundle.ready
    assert dialog.bar.value() == dialog.bar.maximum()


def test_the_window_says_what_is_wrong_and_tries_again(dialog: FirstStartDialog, bundle: Bundle, qtbot: Any) -> None:
    fails = bundle.folder.parent / "index" / "download.fails"
    fails.write_text("connection broken", encoding="utf-8")
    dialog.install.click()
    qtbot.waitUntil(dialog.problem.isVisible, timeout=60_000)
    assert "no network" in dialog.problem.text()
    fails.unlink()
    with qtbot.waitSignal(dialog.accepted, timeout=60_000):
        dialog.install.click()


def test_closing_the_window_stops_it(dialog: FirstStartDialog, bundle: Bundle, qtbot: Any) -> None:
    (bundle.folder.parent / "index" / "slow").touch()
    dialog.install.click()
    qtbot.wait(200)
    with qtbot.waitSignal(dialog.rejected, timeout=60_000):
        dialog.close()
    nothing_is_left(bundle)
