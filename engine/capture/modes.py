"""How a vLLM engine may run while rows are captured, and which of it has been verified.

Eager capture is the safe mode. CUDA graphs run only after the self-test has passed in this very engine: on this GPU
and driver, with this vLLM, backend and model. Every surface asks `plan`, so no surface can run graphs unverified.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

GRAPH_MODES = ("FULL_AND_PIECEWISE", "PIECEWISE", "FULL")
CUDAGRAPH_MODES = (*GRAPH_MODES, "NONE")
COMPILED = "compiled"  # what a graph mode becomes on the CPU, where there are no graphs
EAGER = "eager"
NO_CAPTURE = "none"

DEFAULT_ENFORCE_EAGER = False
DEFAULT_CUDAGRAPH_MODE = "FULL_AND_PIECEWISE"

SelfTest = Literal["not run", "passed", "failed"]


class ModeError(Exception):
    """A mode that does not exist; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class ModeRecord:
    """How an engine runs. `mode` is a graph mode, "compiled", "eager" or "none" (no rows are delivered).

    `reason`: what failed, in this mode or in a better one that was tried before it; "" when nothing did.
    """

    mode: str
    self_test: SelfTest = "not run"
    reason: str = ""

    @property
    def verified(self) -> bool:
        """Whether rows of this engine may be trusted: a mode with capture whose self-test passed in this engine."""
        return self.mode != NO_CAPTURE and self.self_test == "passed"

    @property
    def label(self) -> str:
        """The mode with the result of its self-test, in one word."""
        return f"{self.mode}/{self.self_test}"

    def passed(self) -> ModeRecord:
        return replace(self, self_test="passed", reason="")

    def failed(self, reason: str) -> ModeRecord:
        return replace(self, self_test="failed", reason=reason)


def plan(
    enforce_eager: bool = DEFAULT_ENFORCE_EAGER, cudagraph_mode: str = DEFAULT_CUDAGRAPH_MODE, cpu: bool = False
) -> tuple[str, ...]:
    """The modes to try, best first; each needs its self-test, and the last, "none", delivers no rows.

    `enforce_eager` and `cudagraph_mode` are the values of `mt_vllm_enforce_eager` and `mt_vllm_cudagraph_mode`.
    Raises `ModeError`.
    """
    if cudagraph_mode not in CUDAGRAPH_MODES:
        raise ModeError(
            f"mt_vllm_cudagraph_mode is '{cudagraph_mode}', but it must be one of {', '.join(CUDAGRAPH_MODES)}."
        )
    if enforce_eager or cudagraph_mode == "NONE":
        return EAGER, NO_CAPTURE
    return COMPILED if cpu else cudagraph_mode, EAGER, NO_CAPTURE
