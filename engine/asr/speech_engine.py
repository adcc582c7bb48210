"""One speech model in a vLLM engine of its own process: audio and a prompt in, tokens or classes of tokens out.

The thread that owns the engine, its orders and its cancellation are those of `capture.host`; nothing is captured here.
The engine core is a child process, and it dies with this one (`capture.lifeline`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.capture.guard import CaptureError
from engine.capture.host import Cancel, CaptureEngine, Generation, Job
from engine.capture.modes import NO_CAPTURE, ModeRecord
from engine.capture.settings import EngineSettings
from engine.capture.start import explained, machine

# vLLM's own defaults would hold 4 GiB of audio that never comes twice, and share out a device among all its users.
AUDIO: dict[str, Any] = {
    "language_model_only": False,
    "skip_tokenizer_init": False,
    "limit_mm_per_prompt": {"audio": 1},
    "mm_processor_cache_gb": 0,
}


class RecognitionError(Exception):
    """A speech model that cannot be used; the message is one sentence."""


@dataclass(slots=True)
class SpeechJob(Job):
    """A request with audio. `params`: what vLLM is asked for. `classes`: the answer of an aligner."""

    prompt: Mapping[str, Any] = field(default_factory=dict)
    params: Any = None
    classes: NDArray[np.int64] | None = None


class SpeechEngine(CaptureEngine):
    """A vLLM engine with audio in its prompts. Any thread may ask; what is asked together runs together."""

    def ask(self, job: SpeechJob, cancel: Cancel | None = None) -> Generation:
        """The result of a job. Raises `RecognitionError`."""
        try:
            if not self._order("add", job):
                assert self._failure is not None
                raise self._failure
            return self.wait(job, cancel)
        except CaptureError as error:
            raise RecognitionError(str(error)) from error

    def _add(self, job: Job) -> None:
        assert isinstance(job, SpeechJob)
        job.name = str(next(self._numbers))
        try:
            self._engine.add_request(job.name, job.prompt, job.params)
        except ValueError as error:
            job.finish(error=CaptureError(f"vLLM refused the audio: {error}."))
            return
        self._jobs[job.name] = job

    def _deliver(self, job: Job, output: Any, parts: Sequence[dict[str, Any]]) -> None:
        if isinstance(job, SpeechJob) and hasattr(output.outputs, "data"):
            job.classes = output.outputs.data.argmax(dim=-1).cpu().numpy()
            job.finish(Generation((), "stop", None))
            return
        super()._deliver(job, output, parts)


def start(settings: EngineSettings) -> SpeechEngine:
    """Load a speech model into a process of its own. Raises `RecognitionError`."""

    def build() -> Any:
        from vllm.engine.arg_utils import EngineArgs
        from vllm.usage.usage_lib import UsageContext
        from vllm.v1.engine.llm_engine import LLMEngine
        from vllm.v1.executor import Executor

        arguments = settings.arguments(NO_CAPTURE, device, total_gib, cause_file)
        config = EngineArgs(**arguments).create_engine_config(UsageContext.LLM_CLASS)
        return LLMEngine(config, Executor.get_class(config), log_stats=False, multiprocess_mode=settings.own_process)

    try:
        device, total_gib = machine(settings)
        with explained(settings) as cause_file:
            return SpeechEngine(build, settings, ModeRecord(NO_CAPTURE))
    except CaptureError as error:
        raise RecognitionError(str(error)) from error
