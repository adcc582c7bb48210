"""The engine process of `surtitle benchmark session`: the program's own, which also tells where its time goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.queues import Queue
from typing import Any

from engine.asr.contract import Recogniser
from engine.benchmarks.session_random import RandomModels
from engine.host import Host
from engine.messages import Caption, Configure, Event
from engine.mt.contract import Translator
from engine.mt.remote import RemoteServer
from engine.presets import Preset
from engine.process import run_engine
from engine.spans import Span, listen

Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Work(Event):
    """A span of work, told at its beginning and at its end."""

    span: Span


@dataclass(frozen=True, slots=True)
class Told(Event):
    """The caption that follows left the session at this `time.monotonic()`."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Rows(Event):
    """Attention rows that the translator has asked for so far, and what became of them."""

    mode: str
    self_test: str
    expected: int
    missing: int
    nonfinite: int


def run(commands: Queue[Any], events: Queue[Any], parent_pid: int, random: RandomModels | None) -> None:
    """Entry point of the process. `random`: models with random weights in place of the preset's."""
    run_engine(commands, events, parent_pid, lambda emit: MeasuredHost(emit, random))


class MeasuredHost(Host):
    """A host that tells spans of work, when captions left, and how attention rows fare."""

    def __init__(self, emit: Callable[[Event], None], random: RandomModels | None) -> None:
        super().__init__(self._tell)
        self._out, self._random = emit, random
        listen(self._note)

    def _open_recogniser(self, preset: Preset, command: Configure, progress: Progress) -> Recogniser:
        if self._random is None:
            return super()._open_recogniser(preset, command, progress)
        return self._random.recogniser(preset, command.source_lang, progress, command.context)

    def _open_translator(self, preset: Preset, command: Configure, progress: Progress) -> Translator | RemoteServer:
        if self._random is None:
            return super()._open_translator(preset, command, progress)
        return self._random.translator(preset, command.source_lang, command.target_lang, progress)

    def _tell(self, event: Event) -> None:
        if isinstance(event, Caption):
            self._out(Told(time.monotonic()))
        self._out(event)

    def _note(self, span: Span) -> None:
        self._out(Work(span))
        health = self._models.translator.health if self._models else None
        if span.stage == "translation" and span.ended_s is not None and health is not None:
            self._out(
                Rows(health.mode, health.self_test, health.rows_expected, health.rows_missing, health.rows_nonfinite)
            )
