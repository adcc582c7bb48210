"""Window and laptop preset on other systems, as far as can be said without running there: what is Unix is guarded.

A name that Windows or macOS lacks may be used inside a function that asks for it (`hasattr`, `sys.platform`) or expects
its absence (`AttributeError`, `ImportError`); processes are spawned, never forked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
UNIX_MODULES = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios"}
UNIX_NAMES = {
    *("fork", "forkpty", "getpgrp", "getpgid", "geteuid", "getgid", "getloadavg", "getuid", "killpg", "nice"),
    *("pidfd_open", "posix_fadvise", "sched_getaffinity", "sched_setaffinity", "setpgid", "setsid", "uname", "wait3"),
    *("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "add_signal_handler", "AF_UNIX", "flock"),
}
GUARDS = ("hasattr(", "sys.platform", "AttributeError", "ImportError", "NotImplementedError")
# The MT server is a service of Linux; vLLM, and what measures or trains, run nowhere else.
ELSEWHERE = ("engine/server", "engine/capture", "engine/benchmarks", "engine/finetune", "app/benchmark_window.py")
FILES = [
    path
    for room in ("app", "engine")
    for path in sorted((ROOT / room).rglob("*.py"))
    if not str(path.relative_to(ROOT)).startswith(ELSEWHERE)
]


def unguarded(path: Path) -> Iterator[str]:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    guarded = [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and any(guard in (ast.get_source_segment(source, node) or "") for guard in GUARDS)
    ]
    for node in ast.walk(tree):
        found: set[str] = set()
        if isinstance(node, ast.Import):
            found = {alias.name for alias in node.names} & UNIX_MODULES
        elif isinstance(node, ast.ImportFrom):
            found = {node.module or ""} & UNIX_MODULES
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            found = {node.attr} & UNIX_NAMES if owner in ("os", "signal", "socket", "fcntl", "loop") else set()
        if found and not any(first <= node.lineno <= last for first, last in guarded):
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {', '.join(found)}"


def test_what_only_unix_has_is_guarded() -> None:
    assert len(FILES) > 100
    assert [line for path in FILES for line in unguarded(path)] == []


def test_the_check_finds_what_is_not_guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.test_portability.ROOT", tmp_path)
    path = tmp_path / "some.py"
    path.write_text("import os\nimport fcntl\n\ndef end() -> None:\n    os.killpg(1, 9)\n", encoding="utf-8")
    assert list(unguarded(path)) == ["some.py:2: fcntl", "some.py:5: killpg"]


def test_processes_are_spawned() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                if node.func.attr == "get_context":
                    assert [ast.literal_eval(word) for word in node.args] == ["spawn"], path
                owner = node.func.value
                bare = isinstance(owner, ast.Name) and owner.id in ("multiprocessing", "mp")
                assert not (bare and node.func.attr in ("Process", "Pool", "Queue")), f"{path}: no context"
