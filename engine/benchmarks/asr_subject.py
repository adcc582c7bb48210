"""Whose speed `surtitle benchmark asr` measures: a preset's recogniser, or Qwen3-ASR with random weights.

Random weights write nothing that two updates could agree on. So every request is made as in use, its answer is thrown
away, and a made-up speech takes its place: prompts, prefixes, commits, cuts and the number of new tokens are those of
somebody who speaks at a steady pace.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.asr.alignment import joined, units
from engine.asr.contract import SAMPLE_RATE, WindowDecoder, Word
from engine.asr.qwen import QwenDecoder
from engine.asr.qwen_models import QwenModels, SpeechSettings
from engine.asr.qwen_text import TEXT_TAG
from engine.asr.speech_engine import RecognitionError
from engine.asr.streaming import StreamingRecogniser
from engine.benchmarks.speech_checkpoints import ALIGNERS, sentence, write
from engine.presets import RecogniserPreset

Audio = NDArray[np.float32]
WORDS_PER_S = 2.5
WORD_SHARE = 0.75  # of its time that a word sounds; the rest is the gap behind it
TOKENS_PER_WORD = 1.35  # of these vocabularies, and about that of English in Qwen's


@dataclass(slots=True)
class Update:
    """One decode. `window_s`: seconds of audio in it; `at_s`: where it ends on the session clock; times in ms."""

    window_s: float
    at_s: float
    total_ms: float
    transcribe_ms: float = 0.0
    align_ms: float = 0.0


@dataclass(slots=True)
class Session:
    """One speaker's stream, and what each decode cost."""

    stream: StreamingRecogniser
    updates: list[Update]


@dataclass(slots=True)
class Timed:
    """`WindowDecoder` that notes what a decode costs. `parts`: milliseconds that the decoder noted itself."""

    inner: WindowDecoder
    stream: StreamingRecogniser | None = None
    updates: list[Update] = field(default_factory=list)
    parts: dict[str, float] = field(default_factory=dict)

    def decode(self, audio: Audio, committed: Sequence[Word]) -> list[Word]:
        began = time.perf_counter()
        words = self.inner.decode(audio, committed)
        total_ms = 1000 * (time.perf_counter() - began)
        assert self.stream is not None
        self.updates.append(Update(len(audio) / SAMPLE_RATE, self.stream.window_s[1], total_ms, **self.parts))
        return words

    def close(self) -> None:
        self.inner.close()


class Speech:
    """`QwenModels` whose answers are those of a made-up speech; the real ones are waited for and thrown away."""

    def __init__(self, models: QwenModels, words: Sequence[str]) -> None:
        self._models, self._words = models, words
        self.class_s = models.class_s
        self.stream: StreamingRecogniser | None = None
        self.parts: dict[str, float] = {}

    def transcribe(self, audio: Audio, context: str, head: str, most: int, cancel: Any, exactly: bool) -> str | None:
        began = time.perf_counter()
        written = self._models.transcribe(audio, context, head, most, cancel, exactly)
        self.parts["transcribe_ms"] = 1000 * (time.perf_counter() - began)
        if written is None:
            return None
        said = [word for word, _, _ in self._said(audio)]
        known = len(units(head.partition(TEXT_TAG)[2]))
        if known and known <= len(said) and said[known - 1].endswith("."):
            return ". " + joined(said[known:])
        return " " + joined(said[known:])

    def align(self, audio: Audio, spoken: Sequence[str], cancel: Any) -> list[int] | None:
        began = time.perf_counter()
        classes = self._models.align(audio, spoken, cancel)
        self.parts["align_ms"] = 1000 * (time.perf_counter() - began)
        times = [edge for _, start_s, end_s in self._said(audio) for edge in (start_s, end_s)]
        return None if classes is None else [round(edge / self.class_s) for edge in times[: 2 * len(spoken)]]

    def _said(self, audio: Audio) -> list[tuple[str, float, float]]:
        """Words that lie in the window for the most part, times relative to its start."""
        assert self.stream is not None
        start_s = self.stream.window_s[0]
        end_s = start_s + len(audio) / SAMPLE_RATE
        first, last = max(0, int(np.ceil(start_s * WORDS_PER_S - 0.4))), int(end_s * WORDS_PER_S - 0.4)
        return [
            (
                self._words[number % len(self._words)],
                max(0.0, number / WORDS_PER_S - start_s),
                min(end_s, (number + WORD_SHARE) / WORDS_PER_S) - start_s,
            )
            for number in range(first, last + 1)
        ]


@dataclass(frozen=True, slots=True)
class Subject:
    """A loaded recogniser. `open` begins a session, told whether its speaker makes sentences; `audio`: what is heard,
    so many seconds of it."""

    name: str
    values: RecogniserPreset
    open: Callable[[int, bool], Session]
    audio: Callable[[float], Audio]
    close: Callable[[], None]
    load_s: float


def preset_subject(preset: Any, language: str, recording: Path) -> Subject:
    """A preset's recogniser on a recording, which is repeated as long as it takes.

    Raises `RecognitionError`, `OSError`. What is imported here is not needed, nor always there, for random weights.
    """
    import soundfile

    from engine.asr.factory import load_recogniser
    from engine.audio import SessionAudio
    from engine.models import ModelError

    samples, rate = soundfile.read(recording, dtype="float32", always_2d=True)
    sound = SessionAudio()
    blocks = [*sound.convert(samples.tobytes(), rate, samples.shape[1], 0.0), *sound.flush()]
    heard = np.concatenate([block.samples for block in blocks])
    began = time.monotonic()
    try:
        loaded = load_recogniser(preset, language, lambda fraction, text: None)
    except ModelError as error:
        raise RecognitionError(str(error)) from error
    return Subject(
        preset.recogniser.model,
        loaded.values,
        lambda number, marks: _session(loaded.decoder_for(""), loaded.values, None),
        lambda seconds: np.resize(heard, round(seconds * SAMPLE_RATE)),
        loaded.close,
        time.monotonic() - began,
    )


def random_subject(name: str, folder: Path, values: RecogniserPreset, settings: SpeechSettings) -> Subject:
    """A named Qwen3-ASR and its aligner with random weights. Raises `RecognitionError`."""
    began = time.monotonic()
    models = QwenModels(write(name, folder / name), write(ALIGNERS[name], folder / ALIGNERS[name]), settings)
    models.warm_up()
    load_s = time.monotonic() - began
    noise = np.random.default_rng(5).normal(0, 0.05, 30 * SAMPLE_RATE).astype(np.float32)

    def start(number: int, marks: bool) -> Session:
        speech = Speech(models, sentence(997, number, marks))
        decoder = QwenDecoder(speech, "en", "", forced_tokens_per_s=WORDS_PER_S * TOKENS_PER_WORD)  # type: ignore[arg-type]
        return _session(decoder, values, speech)

    return Subject(
        name, values, start, lambda seconds: np.resize(noise, round(seconds * SAMPLE_RATE)), models.close, load_s
    )


def _session(decoder: WindowDecoder, values: RecogniserPreset, speech: Speech | None) -> Session:
    timed = Timed(decoder)
    stream = StreamingRecogniser(
        timed,
        chunk_ms=values.chunk_ms,
        hold_back_ms=values.hold_back_ms,
        silence_ms=values.silence_ms,
        max_tail_s=values.max_tail_s,
    )
    timed.stream = stream
    if speech is not None:
        speech.stream, timed.parts = stream, speech.parts
    return Session(stream, timed.updates)


class Clock:
    """Real pace for several sessions: wall time from a common beginning."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._stop = threading.Event()

    def now_s(self) -> float:
        return time.monotonic() - self._began

    def wait_until(self, at_s: float) -> None:
        self._stop.wait(max(0.0, at_s - self.now_s()))
