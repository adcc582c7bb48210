"""From a preset to a warm recogniser."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engine.asr.contract import SAMPLE_RATE, Recogniser, WindowDecoder
from engine.asr.streaming import StreamingRecogniser
from engine.models import ModelError, resolve
from engine.presets import Preset

# Without a tokenizer of its own faster-whisper would fetch one from the hub.
WHISPER_FILES = ("model.bin", "config.json", "tokenizer.json")

_WEIGHTS = 0.3  # share of the progress until the weights are found, downloaded and checked

Progress = Callable[[float, str], None]


def create_recogniser(preset: Preset, language: str, progress: Progress) -> Recogniser:
    """Load the preset's recogniser for a language. Raises `ModelError`."""
    values = preset.recogniser
    decoder = _decoder(preset, language, progress)
    progress(0.8, f"Warming up {values.model}")
    decoder.decode(np.zeros(SAMPLE_RATE, np.float32), "")
    progress(1.0, f"{values.model} is ready")
    return StreamingRecogniser(
        decoder,
        chunk_ms=values.chunk_ms,
        hold_back_ms=values.hold_back_ms,
        silence_ms=values.silence_ms,
        max_tail_s=values.max_tail_s,
    )


def _decoder(preset: Preset, language: str, progress: Progress) -> WindowDecoder:
    values = preset.recogniser
    if values.kind != "whisper":
        raise ModelError(f"The recogniser '{values.kind}' is not available here; choose another preset.")
    folder = resolve(values.model, lambda fraction, text: progress(_WEIGHTS * fraction, text))
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
    return decoder
