"""Starting an engine: the best mode of its plan whose self-test passes, or a sentence why not."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from engine.capture import guard, selftest
from engine.capture.cause import GRAPHS, NOTHING, Cause, cause_in
from engine.capture.guard import CaptureError, GraphsFailed, MemoryShort
from engine.capture.host import CaptureEngine
from engine.capture.modes import EAGER, NO_CAPTURE, ModeRecord
from engine.capture.settings import GIB, EngineSettings
from engine.gpus import gpus, take_largest

logger = logging.getLogger("surtitle.capture")
Progress = Callable[[float, str], None]
SelfTest = Callable[[CaptureEngine, int], str | None]
# What vLLM and its processes take from their environment only.
ENVIRONMENT = {
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a forked child would inherit threads and locks of this process
    "VLLM_NO_USAGE_STATS": "1",  # otherwise each engine reports its model and machine to the makers of vLLM
}


def start(
    settings: EngineSettings, progress: Progress | None = None, self_test: SelfTest = selftest.run
) -> CaptureEngine:
    """An engine in the best mode that passes its self-test, or one that delivers no rows. Raises `CaptureError`."""
    device, total_gib = machine(settings)
    tried: list[str] = []
    for mode in settings.plan(device == "cpu"):
        if progress:
            progress(0.1, f"Starting vLLM ({mode})")
        try:
            engine, vocabulary = _build(settings, mode, device, total_gib)
        except GraphsFailed as error:
            if mode in (EAGER, NO_CAPTURE):
                raise
            tried.append(f"{mode}: {str(error).rstrip('.')}")
            logger.error("The translator's model could not start in mode %s: %s", mode, error)
            continue
        if mode == NO_CAPTURE:
            if tried:
                engine.mode = ModeRecord(NO_CAPTURE).failed("; ".join(tried))
            return engine
        if progress:
            progress(0.9, "Checking attention capture")
        try:
            reason = self_test(engine, vocabulary)
        except CaptureError as error:
            reason = str(error)
        except BaseException:
            engine.close()
            raise
        if reason is None:
            engine.mode = replace(engine.mode.passed(), reason="; ".join(tried))
            logger.info("Attention capture runs in mode %s, self-test passed (%s).", mode, engine.info)
            return engine
        engine.close()
        reason = reason.rstrip(".")
        tried.append(f"{mode}: {reason}")
        logger.error("Attention capture failed its self-test in mode %s: %s.", mode, reason)
    raise AssertionError("a plan ends with a mode that needs no test")


def machine(settings: EngineSettings) -> tuple[str, float]:
    """ "cuda" or "cpu", and its memory in GiB. Raises `CaptureError` without vLLM, or when memory is short."""
    os.environ.update(ENVIRONMENT)
    if settings.tensor_parallel == 1:
        take_largest()
    try:
        import torch
        from vllm.platforms import current_platform
    except ImportError as error:
        raise CaptureError(
            "vLLM is not installed: install surtitle[gpu] on Linux with an NVIDIA GPU, or choose another preset."
        ) from error
    if current_platform.is_cpu():
        import psutil

        return "cpu", psutil.virtual_memory().total / GIB
    if not torch.cuda.is_available():
        raise CaptureError("vLLM finds no NVIDIA GPU on this machine: choose a preset that runs on the CPU.")
    total, free = _gpu_memory()
    if settings.memory_gib > free:
        raise MemoryShort(
            f"The {settings.role} needs {settings.memory_gib:.1f} GiB of GPU memory, but only {free:.1f} GiB are free.",
            free,
        )
    return "cuda", total


def _gpu_memory() -> tuple[float, float]:
    """Total and free GiB of the GPU that vLLM will take. Asking CUDA would cost this process half a GiB of it."""
    if found := gpus():
        return found[0][1:]
    import torch

    free, total = torch.cuda.mem_get_info()
    return total / GIB, free / GIB


def _build(settings: EngineSettings, mode: str, device: str, total_gib: float) -> tuple[CaptureEngine, int]:
    """An engine in one mode, not tested yet, and the size of its vocabulary."""
    from vllm.engine.arg_utils import EngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.llm_engine import LLMEngine
    from vllm.v1.executor import Executor

    vocabulary = 0

    def build() -> LLMEngine:
        nonlocal vocabulary
        arguments = settings.arguments(mode, device, total_gib, cause_file)
        config = EngineArgs(**arguments).create_engine_config(UsageContext.LLM_CLASS)
        vocabulary = config.model_config.get_vocab_size()
        if mode != NO_CAPTURE:
            _check(config, settings)
        return LLMEngine(config, Executor.get_class(config), log_stats=False, multiprocess_mode=settings.own_process)

    with explained(settings) as cause_file:
        return CaptureEngine(build, settings, ModeRecord(mode)), vocabulary


def _check(config: Any, settings: EngineSettings) -> None:
    """What can be refused before anything is loaded. Raises `CaptureError`."""
    from vllm.version import __version__ as version

    guard.check_version(version, settings.allow_unvalidated_vllm)
    guard.check_config(config, settings.allow_unvalidated_vllm)
    text = config.model_config.hf_text_config
    guard.check_heads(settings.heads, int(text.num_hidden_layers), int(text.num_attention_heads))


@contextmanager
def explained(settings: EngineSettings) -> Iterator[str]:
    """Around the start of an engine: whatever vLLM raises becomes one sentence. Raises `CaptureError`.

    Gives the file in which the engine's processes may note the cause (`EngineSettings.arguments`).
    """
    with TemporaryDirectory(prefix="surtitle-") as folder:
        file = Path(folder) / "cause"
        try:
            yield str(file)
        except Exception as error:
            logger.debug("vLLM could not start", exc_info=True)
            cause = cause_in(file)
            told = explain(error, settings, cause)
            raise (GraphsFailed(str(told)) if cause.step == GRAPHS else told) from error


def explain(error: BaseException, settings: EngineSettings, noted: Cause = NOTHING) -> CaptureError:
    """One sentence for what stopped an engine from starting.

    `noted`: what its processes have noted, which says more than the error that arrived here.
    """
    if noted.kind == CaptureError.__name__:
        return CaptureError(noted.text)
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or link.__context__
    for cause in chain:
        if isinstance(cause, CaptureError):
            return cause
    text, reason = " ".join((noted.text, *map(str, chain))), _first_line(noted.text or error)
    if "out of memory" in text.lower() or "Free memory on device" in text or "No available memory" in text:
        return CaptureError(f"There is not enough memory for {settings.model}: {reason}.")
    if "gated" in text.lower() or "restricted" in text.lower():
        return CaptureError(f"{settings.model} is gated: accept its terms at https://huggingface.co/{settings.model}.")
    if "not supported for now" in text or "architectures" in text:
        return CaptureError(f"vLLM does not know the architecture of {settings.model}: {reason}.")
    return CaptureError(f"vLLM could not start {settings.model}: {reason}.")


def _first_line(error: Any) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
