"""Why a vLLM process ended while it started, told to the process that waits for it.

Of an engine in a process of its own vLLM says only that it failed, and writes the reason where nobody looks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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


@contextmanager
def noted(file: str) -> Iterator[None]:
    """Note the first error that passes through as `Type: text`. `file`: one that does not exist yet, "" for none."""
    try:
        yield
    except Exception as error:
        if file:
            with suppress(OSError), Path(file).open("x", encoding="utf-8") as out:
                out.write(f"{type(error).__name__}: {error}")
        raise


def note_steps(worker: Any, file: str) -> None:
    """Have errors of a worker's `STEPS` noted."""
    for name in STEPS:
        setattr(worker, name, _noting(getattr(worker, name), file))


def cause_in(file: Path) -> tuple[str, str]:
    """Name of the type and text of the error that was noted, empty when none was."""
    try:
        name, _, text = file.read_text(encoding="utf-8").partition(": ")
    except OSError:
        return "", ""
    return name, text


def _noting(step: Callable[..., Any], file: str) -> Callable[..., Any]:
    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        with noted(file):
            return step(*args, **kwargs)

    return run
