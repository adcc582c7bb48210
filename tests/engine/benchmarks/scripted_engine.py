"""The engine process of the session benchmark without models: a voice, a recogniser and a translator by script."""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.queues import Queue
from typing import Any

from engine import audio
from engine.asr.contract import SAMPLE_RATE, Recogniser, Word
from engine.benchmarks import session_engine
from engine.messages import Configure
from engine.models import ModelError
from engine.mt.contract import Translator
from engine.presets import Preset
from engine.process import run_engine
from tests.engine.asr.helpers import Audio, recogniser, words
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.sessions import Voice

SAID = "we have a house on the hill and a garden behind it with trees"


class Talk:
    """`WindowDecoder` that hears a word in every 0.3 s of its window."""

    def decode(self, audio: Audio, committed: Sequence[Word]) -> list[Word]:
        time.sleep(0.01)
        return words(SAID, each_s=0.3)[: int(len(audio) / SAMPLE_RATE / 0.3)]

    def close(self) -> None:
        pass


class Slow(ScriptedTranslator):
    """Drafts for as long as an update of the recogniser may come between."""

    def draft(self, *args: Any) -> Any:
        time.sleep(0.4)
        return super().draft(*args)


class Scripted(session_engine.MeasuredHost):
    """A host that loads nothing. The overridden title of the preset says how it behaves."""

    def _open_recogniser(self, preset: Preset, command: Configure, progress: Any) -> Recogniser:
        progress(0.5, "Loading ears")
        if preset.title == "fails":
            raise ModelError("There is no model here.")
        return recogniser(Talk(), chunk_ms=300)

    def _open_translator(self, preset: Preset, command: Configure, progress: Any) -> Translator:
        progress(0.5, "Loading a mouth")
        return Slow()


def run(commands: Queue[Any], events: Queue[Any], parent_pid: int, random: Any) -> None:
    """In place of `session_engine.run`."""
    audio.VoiceActivity = Voice  # type: ignore[misc]
    run_engine(commands, events, parent_pid, lambda emit: Scripted(emit, random))
