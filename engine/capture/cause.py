"""Why a vLLM process ended while it started, told to the process that waits for it.

Of an engine in a process of its own vLLM says only that it failed, and writes the reason where nobody looks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What a worker does until its engine is ready.
STEPS = (
    "init_device",
    "load_model",
    "determine_available_memory",
    "initialize_from_config",
    "compile_or_warm_up_model",
)
GRAPHS = STEPS[-1]  # the model is in memory; compiled code and CUDA graphs are made of it


@dataclass(frozen=True, slots=True)
class Cause:
    """What was noted: one of `STEPS` or "", name of the error's type, and its text; empty when nothing was."""

    step: str = ""
    kind: str = ""
    text: str = ""


NOTHING = Cause()


@contextmanager
def noted(file: str, step: str = "") -> Iterator[None]:
    """Note the first error that passes through. `file`: one that does not exist yet, "" for none."""
    try:
        yield
    except Exception as error:
        if file:
            with suppress(OSError), Path(file).open("x", encoding="utf-8") as out:
                out.write(f"{step}\n{type(error).__name__}\n{error}")
        raise


def note_steps(worker: Any, file: str) -> None:
    """Have errors of a worker's `STEPS` noted."""
    for name in STEPS:
        setattr(worker, name, _noting(getattr(worker, name), name, file))


def cause_in(file: Path) -> Cause:
    """The cause that was noted."""
    try:
        return Cause(*file.read_text(encoding="utf-8").split("\n", 2))
    except OSError:
        return NOTHING


def _noting(step: Callable[..., Any], name: str, file: str) -> Callable[..., Any]:
    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        with noted(file, name):
            return step(*args, **kwargs)

    return run
