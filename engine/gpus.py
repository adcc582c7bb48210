"""The GPUs of this machine, as NVIDIA's management library tells it."""

from __future__ import annotations

import logging

logger = logging.getLogger("surtitle.engine")

GIB = 2**30


def gpus() -> tuple[tuple[str, float, float], ...]:
    """(name, total GiB, free GiB) of each NVIDIA GPU; none where there is no driver."""
    try:
        import pynvml
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        logger.info("no NVIDIA GPU: %s", error)
        return ()
    try:
        return tuple(_describe(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError as error:
        logger.warning("the GPUs cannot be read: %s", error)
        return ()
    finally:
        pynvml.nvmlShutdown()


def _describe(nvml: object, index: int) -> tuple[str, float, float]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)  # type: ignore[attr-defined]
    name = nvml.nvmlDeviceGetName(handle)  # type: ignore[attr-defined]
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)  # type: ignore[attr-defined]
    text = name.decode() if isinstance(name, bytes) else str(name)
    return text, round(memory.total / GIB, 1), round(memory.free / GIB, 1)
