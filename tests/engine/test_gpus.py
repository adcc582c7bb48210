"""GPUs as the management library tells them; the library itself is replaced, for test machines have none."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from engine.gpus import GIB, gpus


class FakeError(Exception):
    """What the library raises."""


def library(count: int = 1, *, broken: str = "") -> SimpleNamespace:
    def fail_if(name: str) -> None:
        if broken == name:
            raise FakeError("driver not loaded")

    return SimpleNamespace(
        NVMLError=FakeError,
        nvmlInit=lambda: fail_if("init"),
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: count,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetName=lambda handle: b"Small GPU" if handle else "Large GPU",
        nvmlDeviceGetMemoryInfo=lambda handle: (fail_if("memory"), SimpleNamespace(total=40 * GIB, free=31.25 * GIB))[
            1
        ],
    )


def test_names_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library(2))
    assert gpus() == (("Large GPU", 40.0, 31.2), ("Small GPU", 40.0, 31.2))


@pytest.mark.parametrize("broken", ["init", "memory"])
def test_a_library_that_fails_means_no_gpu(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library(broken=broken))
    assert gpus() == ()


def test_without_the_library_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert gpus() == ()


def test_this_machine_answers() -> None:
    assert isinstance(gpus(), tuple)
