"""What stops an engine in a process of its own reaches the process that waits for it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.capture.cause import NOTHING, STEPS, Cause, cause_in, note_steps, noted
from engine.capture.guard import CaptureError, GraphsFailed
from engine.capture.lifeline import Lifeline
from engine.capture.settings import CaptureConfig, EngineSettings
from engine.capture.start import explained

SETTINGS = EngineSettings("owner/model")


def silent() -> RuntimeError:
    """What vLLM tells whoever waits."""
    return RuntimeError("Engine core initialization failed. See root cause above. Failed core proc(s): {'core': 1}")


class Worker:
    """What vLLM's worker classes have in common, failing where a test says so."""

    def __init__(self, vllm_config: Any, fails_in: str = "", rank: int = 0) -> None:
        self.vllm_config, self.fails_in, self.done = vllm_config, fails_in, []
        self._step("init")

    def _step(self, name: str) -> str:
        if name == self.fails_in:
            raise MemoryError(f"CUDA out of memory in {name}.\nDetails: none")
        self.done.append(name)
        return name


for step in STEPS:
    setattr(Worker, step, lambda self, *args, name=step: self._step(name))


class Watched(Lifeline, Worker):
    """As the project's workers are made."""


def start_in(fails_in: str) -> None:
    """Start an engine whose process fails as vLLM's would: with its reason on paper, and none for the parent."""
    with explained(SETTINGS) as file:
        config = SimpleNamespace(additional_config=CaptureConfig((), False, file))
        try:
            worker = Watched(vllm_config=config, fails_in=fails_in)
            for name in STEPS:
                assert getattr(worker, name)() == name
        except MemoryError:
            raise silent() from None


@pytest.mark.parametrize("fails_in", ["init", *STEPS])
def test_the_cause_of_a_failed_start_is_in_the_sentence(fails_in: str) -> None:
    with pytest.raises(CaptureError) as caught:
        start_in(fails_in)
    assert str(caught.value) == f"There is not enough memory for owner/model: CUDA out of memory in {fails_in}."
    assert isinstance(caught.value, GraphsFailed) == (fails_in == "compile_or_warm_up_model")


def test_a_start_that_succeeds_notes_nothing() -> None:
    start_in("")


def test_without_a_cause_vllm_is_quoted() -> None:
    quoted = r"^vLLM could not start owner/model: Engine core initialization failed\."
    with pytest.raises(CaptureError, match=quoted), explained(SETTINGS):
        raise silent()


def test_a_sentence_of_a_worker_stays_as_it_is() -> None:
    sentence = "Head (99, 0): the model has layers 0 to 17."

    def start() -> None:
        with explained(SETTINGS) as file:
            with suppress(CaptureError), noted(file):
                raise CaptureError(sentence)
            raise silent()

    with pytest.raises(CaptureError) as caught:
        start()
    assert str(caught.value) == sentence


def test_the_first_cause_counts(tmp_path: Path) -> None:
    file = tmp_path / "cause"
    for text in ("first: of all\nof them", "second"):
        with pytest.raises(ValueError, match=text), noted(str(file)):
            raise ValueError(text)
    assert cause_in(file) == Cause("", "ValueError", "first: of all\nof them")
    assert cause_in(tmp_path / "none") == NOTHING


def test_nothing_is_noted_where_nobody_asks(tmp_path: Path) -> None:
    worker = Worker(None, "load_model")
    note_steps(worker, "")
    with pytest.raises(MemoryError):
        worker.load_model()  # type: ignore[attr-defined]
    gone = str(tmp_path / "gone" / "cause")
    with pytest.raises(ValueError, match="x"), noted(gone):
        raise ValueError("x")
