"""The GPUs of this machine and their driver, as NVIDIA's management library tells it."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

logger = logging.getLogger("surtitle.engine")

GIB = 2**30
# Oldest driver of each build of vLLM's wheels, newest first; the same as in packaging/setup-gpu.sh.
FLAVOURS = ((580, "CUDA 13"), (525, "CUDA 12.9"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Driver:
    """The NVIDIA driver. `cuda`: the newest CUDA that it knows."""

    version: str
    cuda: str

    @property
    def flavour(self) -> str:
        """Which of vLLM's wheels runs with it, "" when none does."""
        major = int(found[0]) if (found := re.match(r"\d+", self.version)) else 0
        return next((name for oldest, name in FLAVOURS if major >= oldest), "")


def gpus() -> tuple[tuple[str, float, float], ...]:
    """(name, total GiB, free GiB) of each NVIDIA GPU that CUDA_VISIBLE_DEVICES leaves; none without a driver."""
    found: tuple[tuple[str, float, float], ...] = _asked(_all_gpus, ())
    return found


def largest(found: tuple[tuple[str, float, float], ...]) -> int:
    """Which of these GPUs is used: the first with the most memory. There must be one."""
    return max(range(len(found)), key=lambda at: found[at][1])


def take_largest() -> None:
    """Have CUDA in this process and its children take the largest GPU. To be called before CUDA is loaded."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order of `gpus`; without it the fastest is CUDA's first
    found = gpus()
    if found and (at := largest(found)):
        names = os.environ.get("CUDA_VISIBLE_DEVICES")
        os.environ["CUDA_VISIBLE_DEVICES"] = names.split(",")[at].strip() if names else str(at)


def given_back(found: tuple[tuple[str, float, float], ...], held_gib: float) -> tuple[tuple[str, float, float], ...]:
    """GPUs with so much more free memory on the one that is used."""
    if not found or not held_gib:
        return found
    at = largest(found)
    name, total, free = found[at]
    return (*found[:at], (name, total, min(total, free + held_gib)), *found[at + 1 :])


def driver() -> Driver | None:
    """The driver, None without one."""
    return _asked(_driver, None)


def torch_cuda() -> str:
    """The CUDA that the installed torch was built for, "" for none. Does not load torch."""
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return ""
    try:
        text = (Path(spec.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"^cuda\b[^=]*=\s*['\"]([\d.]+)", text, re.MULTILINE)
    return found[1] if found else ""


def _asked(question: Callable[[Any], T], nothing: T) -> T:
    """What the library answers to a question, `nothing` where it cannot."""
    try:
        import pynvml
    except ImportError:
        return nothing
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        logger.info("no NVIDIA GPU: %s", error)
        return nothing
    try:
        return question(pynvml)
    except pynvml.NVMLError as error:
        logger.warning("the GPUs cannot be read: %s", error)
        return nothing
    finally:
        pynvml.nvmlShutdown()


def _all_gpus(nvml: Any) -> tuple[tuple[str, float, float], ...]:
    return tuple(_describe(nvml, handle) for handle in _visible(nvml))


def _visible(nvml: Any) -> list[Any]:
    """Handles of the GPUs in the order that CUDA has them in; from the first name that is none on, CUDA sees none."""
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = nvml.nvmlDeviceGetCount()
    if wanted is None:
        return [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(count)]
    handles = []
    for name in (part.strip() for part in wanted.split(",")):
        if name.startswith(("GPU-", "MIG-")):
            handles.append(nvml.nvmlDeviceGetHandleByUUID(name))
        elif name.isdecimal() and int(name) < count:
            handles.append(nvml.nvmlDeviceGetHandleByIndex(int(name)))
        else:
            break
    return handles


def _describe(nvml: Any, handle: Any) -> tuple[str, float, float]:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return _text(nvml.nvmlDeviceGetName(handle)), round(memory.total / GIB, 1), round(memory.free / GIB, 1)


def _driver(nvml: Any) -> Driver:
    cuda = nvml.nvmlSystemGetCudaDriverVersion()
    return Driver(_text(nvml.nvmlSystemGetDriverVersion()), f"{cuda // 1000}.{cuda % 1000 // 10}")


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
