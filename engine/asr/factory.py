"""From a preset to a warm recogniser."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine import fitting
from engine.asr.contract import SAMPLE_RATE, Recogniser, WindowDecoder, Word
from engine.asr.streaming import StreamingRecogniser
from engine.models import ModelError, check, resolve
from engine.presets import Preset, RecogniserPreset

if TYPE_CHECKING:
    from engine.asr.qwen_models import QwenModels

# Without a tokenizer of its own faster-whisper would fetch one from the hub.
WHISPER_FILES = ("model.bin", "config.json", "tokenizer.json")

_WEIGHTS = 0.3  # share of the progress until the weights are found, downloaded and checked

Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class LoadedRecogniser:
    """A recogniser's models, warm, for any number of sessions. `decoder_for`: a session's decoder, given its context.

    `close` frees the models; sessions that still run end with errors.
    """

    values: RecogniserPreset
    decoder_for: Callable[[str], WindowDecoder]
    close: Callable[[], None]

    def open(self, context: str = "") -> StreamingRecogniser:
        """A recogniser for one more session. `context`: names and terms that may be said, for models that take them."""
        return self._stream(self.decoder_for(context))

    def only(self, context: str = "") -> StreamingRecogniser:
        """A recogniser for the only session: the models are freed with it."""
        return self._stream(_Only(self.decoder_for(context), self.close))

    def _stream(self, decoder: WindowDecoder) -> StreamingRecogniser:
        return StreamingRecogniser(
            decoder,
            chunk_ms=self.values.chunk_ms,
            hold_back_ms=self.values.hold_back_ms,
            silence_ms=self.values.silence_ms,
            max_tail_s=self.values.max_tail_s,
        )


@dataclass(frozen=True, slots=True)
class _Only:
    """A decoder that takes its models with it."""

    decoder: WindowDecoder
    close_models: Callable[[], None]

    def decode(self, audio: NDArray[np.float32], committed: Sequence[Word]) -> list[Word]:
        return self.decoder.decode(audio, committed)

    def close(self) -> None:
        self.decoder.close()
        self.close_models()


def create_recogniser(preset: Preset, language: str, progress: Progress, context: str = "") -> Recogniser:
    """Load the preset's recogniser for one speaker of a language. Raises `ModelError`."""
    return load_recogniser(preset, language, progress).only(context)


def load_recogniser(preset: Preset, language: str, progress: Progress) -> LoadedRecogniser:
    """Load and warm up the preset's recogniser for speakers of a language. Raises `ModelError`."""
    load = {"whisper": _whisper, "qwen": _qwen}[preset.recogniser.kind]
    loaded = load(preset, language, progress)
    progress(1.0, f"{preset.recogniser.model} is ready")
    return loaded


def _whisper(preset: Preset, language: str, progress: Progress) -> LoadedRecogniser:
    values = preset.recogniser
    folder = resolve(values.model, lambda fraction, text: progress(_WEIGHTS * fraction, text), values.kind)
    try:
        from engine.asr.whisper import WhisperDecoder
    except ImportError as error:
        raise ModelError(
            f"The recogniser needs faster-whisper ({error.name} is missing): pip install 'surtitle[laptop]'."
        ) from error
    for name in WHISPER_FILES:
        if not (folder / name).is_file():
            raise ModelError(f"{folder} holds no whisper model that can be loaded: it has no {name}.")
    progress(_WEIGHTS, f"Loading {values.model}")
    try:
        decoder = WhisperDecoder(folder, language, threads=values.threads)
    except (RuntimeError, ValueError, OSError) as error:
        reason = str(error).split(". ")[0].rstrip(".")  # what follows is advice to programmers
        raise ModelError(f"{folder} holds no whisper model that can be loaded: {reason}.") from error
    if language != "en" and not decoder.multilingual:
        raise ModelError(
            f"{values.model} knows English only and cannot hear '{language}'; choose a multilingual whisper model."
        )
    progress(0.8, f"Warming up {values.model}")
    decoder.decode(np.zeros(SAMPLE_RATE, np.float32), ())
    return LoadedRecogniser(values, lambda context: decoder, decoder.close)


def _qwen(preset: Preset, language: str, progress: Progress) -> LoadedRecogniser:
    from engine.asr.qwen import QwenDecoder

    models = load_qwen(preset, language, progress)
    spoken = "" if preset.recogniser.detect_language else language
    return LoadedRecogniser(preset.recogniser, lambda context: QwenDecoder(models, spoken, context), models.close)


def load_qwen(preset: Preset, language: str, progress: Progress, vllm: Mapping[str, Any] | None = None) -> QwenModels:
    """Qwen3-ASR and its aligner, warm. `vllm`: further arguments of vLLM for both. Raises `ModelError`."""
    from engine.asr.qwen import check_language
    from engine.asr.qwen_models import QwenModels, SpeechSettings
    from engine.asr.speech_engine import RecognitionError

    values = preset.recogniser
    if not values.aligner:
        raise ModelError(
            f"The preset '{preset.id}' names no forced aligner for {values.model}: set recogniser.aligner."
        )
    spoken = "" if values.detect_language else language
    half = _WEIGHTS / 2
    try:
        check_language(spoken)
        for model in (values.model, values.aligner):
            check(model, values.kind)
        fitting.check(preset, "recogniser")
        folder = resolve(values.model, lambda fraction, text: progress(half * fraction, text))
        aligner = resolve(values.aligner, lambda fraction, text: progress(half + half * fraction, text))
        memory, pool = preset.memory_gib, preset.kv_cache_gib
        settings = SpeechSettings(
            enforce_eager=values.asr_vllm_enforce_eager,
            memory_gib=(memory.asr, memory.aligner),
            kv_cache_gib=(pool.asr, pool.aligner),
            vllm=vllm or {},
        )
        models = QwenModels(folder, aligner, settings, lambda fraction, text: progress(_WEIGHTS + 0.6 * fraction, text))
    except RecognitionError as error:
        raise ModelError(str(error)) from error
    try:
        progress(0.9, f"Warming up {values.model}")
        models.warm_up()
    except BaseException as error:
        models.close()
        if isinstance(error, RecognitionError):
            raise ModelError(str(error)) from error
        raise
    return models
