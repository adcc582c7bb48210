"""What a test of the window may not leave behind: timers that run, threads, visible windows, child processes."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
from PySide6.QtCore import QAbstractAnimation, QObject, QThread, QTimer
from PySide6.QtWidgets import QApplication

PATIENCE_S = 10.0  # a thread or a process that is on its way out may take so long on a busy machine
SPARED = ("pytest_timeout", "asyncio_", "pydevd", "journal-sync")


def _runs(thing: object) -> bool:
    match thing:
        case QTimer():
            return thing.isActive()
        case QAbstractAnimation():
            return thing.state() is QAbstractAnimation.State.Running
        case QThread():
            return thing.isRunning() and thing is not QThread.currentThread()
    return False


def _timers() -> list[str]:
    """Timers, animations and threads of Qt that run, by what owns them."""
    found = []
    for thing in gc.get_objects():
        if not issubclass(type(thing), QObject):  # asking the thing itself would wake lazy objects of other libraries
            continue
        try:
            if _runs(thing):
                found.append(f"{thing!r} of {thing.parent()!r}")
        except (RuntimeError, ReferenceError):  # Qt has thrown it away already
            continue
    return found


def _windows() -> list[str]:
    return [repr(widget) for widget in QApplication.topLevelWidgets() if widget.isVisible()]


def _threads(before: set[threading.Thread]) -> list[str]:
    new = set(threading.enumerate()) - before
    return [thread.name for thread in new if thread.is_alive() and not thread.name.startswith(SPARED)]


def _children(before: set[int]) -> list[str]:
    """Running ones; the resource tracker of multiprocessing belongs to the whole run."""
    found = []
    for child in psutil.Process().children(recursive=True):
        try:
            line = " ".join(child.cmdline())
            if child.pid not in before and child.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in line:
                found.append(f"{child.pid} {line[:120]}")
        except psutil.NoSuchProcess:
            continue
    return found


def _wait_for_none(find: Callable[[], list[str]]) -> list[str]:
    end_s = time.monotonic() + PATIENCE_S
    while (found := find()) and time.monotonic() < end_s:
        QApplication.processEvents()
        time.sleep(0.02)
    return found


@contextmanager
def nothing_left_behind() -> Iterator[None]:
    """Fails when what runs inside leaves something behind. Widgets that are deleted later are deleted first."""
    threads, children = set(threading.enumerate()), {child.pid for child in psutil.Process().children(recursive=True)}
    yield
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        return
    application.sendPostedEvents(None, 52)  # DeferredDelete
    application.processEvents()
    left = {
        "visible windows": _windows(),
        "running timers": _timers(),
        "threads": _wait_for_none(lambda: _threads(threads)),
        "child processes": _wait_for_none(lambda: _children(children)),
    }
    assert not any(left.values()), {name: found for name, found in left.items() if found}


def throw_away(widget: QObject) -> None:
    """Delete a widget now rather than when Python thinks of it."""
    widget.deleteLater()
    QApplication.sendPostedEvents(widget, 52)
