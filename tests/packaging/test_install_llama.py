"""`packaging/install-llama.sh` where the translator's library cannot be compiled: one sentence, and nothing fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "packaging" / "install-llama.sh"
TOOLS = ("bash", "dirname", "sed", "grep", "tail", "tr", "touch", "rm", "sleep", "echo")
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """An environment with a Python by script, and a PATH without any compiler."""
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "path").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (tmp_path / "path" / tool).symlink_to(found)
    return tmp_path


def program(path: Path, text: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


def install(place: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": str(place / "path")}
    environment.pop("CXX", None)
    return subprocess.run(
        [SCRIPT, place / "env" / "bin" / "python", place / "env" / ".llama"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_no_compiler_is_one_line_and_no_failure(place: Path) -> None:
    program(place / "env" / "bin" / "python", "exit 1")
    (place / "env" / ".llama").touch()
    done = install(place)
    assert done.returncode == 0
    assert done.stderr.count("\n") == 1
    assert "no C++ compiler is here" in done.stderr
    assert "will run on torch, more slowly" in done.stderr
    assert not (place / "env" / ".llama").exists()


def test_what_does_not_compile_is_no_failure(place: Path) -> None:
    program(place / "path" / "g++", "exit 0")
    program(place / "env" / "bin" / "python", 'echo "error: no such header"; exit 1')
    done = install(place)
    assert done.returncode == 0
    assert "error: no such header" in done.stderr
    assert "did not compile" in done.stderr.splitlines()[-1]
    assert not (place / "env" / ".llama").exists()


def test_what_is_compiled_gets_its_stamp(place: Path) -> None:
    program(place / "path" / "g++", "exit 0")
    program(place / "env" / "bin" / "python", 'if [[ $1 == -m ]]; then echo " [1/2] compiling"; else exit 1; fi')
    done = install(place)
    assert done.returncode == 0
    assert done.stderr == ""
    assert (place / "env" / ".llama").exists()


def test_what_is_there_is_not_compiled_again(place: Path) -> None:
    requirement = next(line for line in Path(SCRIPT.parents[1] / "pyproject.toml").read_text("utf-8").splitlines()
                       if "llama-cpp-python==" in line)  # fmt: skip
    version = requirement.split("==")[1].split('"')[0]
    program(place / "env" / "bin" / "python", f"[[ $1 == -c ]] && echo {version} || exit 9")
    done = install(place)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (place / "env" / ".llama").exists()
