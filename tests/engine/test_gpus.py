"""GPUs as the management library tells them; the library itself is replaced, for test machines have none."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import gpus as gpus_module
from engine.gpus import FLAVOURS, GIB, Driver, driver, given_back, gpus, largest, take_largest, torch_cuda


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
        nvmlDeviceGetHandleByUUID=lambda uuid: 1,
        nvmlSystemGetDriverVersion=lambda: b"580.65.06",
        nvmlSystemGetCudaDriverVersion=lambda: 13000,
        nvmlDeviceGetName=lambda handle: b"Small GPU" if handle else "Large GPU",
        nvmlDeviceGetMemoryInfo=lambda handle: (fail_if("memory"), SimpleNamespace(total=40 * GIB, free=31.25 * GIB))[
            1
        ],
    )


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


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
    assert (found := driver()) is None or found.version


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", library(2))


@pytest.mark.usefixtures("two")
@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("1", ["Small GPU"]),
        ("1,0", ["Small GPU", "Large GPU"]),
        ("GPU-8a", ["Small GPU"]),
        ("", []),
        ("-1", []),
        ("0,7,1", ["Large GPU"]),
    ],
)
def test_hidden_gpus_do_not_count(monkeypatch: pytest.MonkeyPatch, value: str, names: list[str]) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert [name for name, _, _ in gpus()] == names


@pytest.mark.parametrize(
    ("gib", "given", "taken"),
    [
        ((8, 40), None, "1"),
        ((8, 40, 40), None, "1"),
        ((8, 16, 40), "1, 2", "2"),
        ((8, 40), "GPU-8a", "GPU-8a"),
        ((40, 8), None, None),
        ((40, 40), "1,0", "1,0"),
        ((), None, None),
    ],
)
def test_cuda_takes_the_largest(
    monkeypatch: pytest.MonkeyPatch, gib: tuple[int, ...], given: str | None, taken: str | None
) -> None:
    nvml = library(len(gib))
    nvml.nvmlDeviceGetMemoryInfo = lambda handle: SimpleNamespace(total=gib[handle] * GIB, free=GIB)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    for name, value in (("CUDA_DEVICE_ORDER", "FASTEST_FIRST"), ("CUDA_VISIBLE_DEVICES", given)):
        monkeypatch.setenv(name, value or "")  # and back to what it was
    if given is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    take_largest()
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == taken
    assert os.environ["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert len(gpus()) < 2 or largest(gpus()) == 0


@pytest.mark.usefixtures("two")
def test_the_driver_and_the_wheels_that_it_runs() -> None:
    assert driver() == Driver("580.65.06", "13.0")
    flavours = {version: Driver(version, "").flavour for version in ("580.65.06", "579.9", "525.1", "524.9", "?")}
    assert list(flavours.values()) == ["CUDA 13", "CUDA 12.9", "CUDA 12.9", "", ""]


def test_the_script_that_installs_vllm_knows_the_same_drivers() -> None:
    script = (Path(__file__).parents[2] / "packaging" / "setup-gpu.sh").read_text(encoding="utf-8")
    assert re.findall(r"major >= (\d+)\)\); then\n(?:.*\n)*?    flavour=\"(CUDA [\d.]+)", script) == [
        (str(oldest), name) for oldest, name in FLAVOURS
    ]


def test_memory_that_is_held_comes_back_to_the_largest() -> None:
    two = (("small", 8.0, 7.0), ("large", 40.0, 5.0))
    assert given_back(two, 33.0) == (("small", 8.0, 7.0), ("large", 40.0, 38.0))
    assert given_back(two, 39.0)[1] == ("large", 40.0, 40.0)
    assert given_back((), 33.0) == ()
    assert given_back(two, 0.0) == two


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n", "13.0"),
        ("cuda: str | None = None\nhip = '6.0'\n", ""),
    ],
)
def test_what_torch_was_built_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, cuda: str) -> None:
    (tmp_path / "version.py").write_text(text, encoding="utf-8")
    found = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(gpus_module, "find_spec", lambda name: found)
    assert torch_cuda() == cuda
    monkeypatch.setattr(gpus_module, "find_spec", lambda name: None)
    assert torch_cuda() == ""
