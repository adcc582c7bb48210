"""From a device's own format to words: session audio, speech gate and the built-in recogniser together."""

from __future__ import annotations

import jiwer
import numpy as np
import pytest
import soundfile
import soxr

from engine.asr.contract import SAMPLE_RATE, Recogniser, Transcript
from engine.asr.factory import create_recogniser
from engine.audio import GateEvent, SessionAudio, SpeechChunk, SpeechGate, SpeechPause
from engine.presets import load_preset, resources
from tests.engine.asr.helpers import Audio, Reader
from tests.engine.test_bundled_recording import words

PRESET = load_preset("laptop")
BLOCK_S = 0.1


def quiet(fraction: float, sentence: str) -> None:
    pass


@pytest.fixture(scope="module")
def loaded() -> Recogniser:
    return create_recogniser(PRESET, "en", quiet)


@pytest.fixture
def stream(loaded: Recogniser) -> Recogniser:
    loaded.reset()
    return loaded


def hear(stream: Recogniser, samples: Audio, rate: int = SAMPLE_RATE) -> Reader:
    """Play samples [frames] or [frames, channels] in blocks, as a session does."""
    audio, gate, reader = SessionAudio(), SpeechGate(silence_ms=PRESET.recogniser.silence_ms), Reader()

    def take(event: GateEvent) -> Transcript:
        if isinstance(event, SpeechChunk):
            return stream.push(event.samples, event.start_s)
        return stream.pause() if isinstance(event, SpeechPause) else stream.finish()

    frames = samples.reshape(len(samples), -1).astype(np.float32)
    for first in range(0, len(frames), round(BLOCK_S * rate)):
        piece = frames[first : first + round(BLOCK_S * rate)]
        for block in audio.convert(piece.tobytes(), rate, frames.shape[1], first / rate):
            for event in gate.push(block.samples, block.start_s):
                reader.take(take(event))
    for block in audio.flush():
        for event in gate.push(block.samples, block.start_s):
            reader.take(take(event))
    for event in gate.finish():
        reader.take(take(event))
    reader.take(stream.finish())
    return reader


@pytest.mark.models
def test_the_recording_is_heard_and_cut_into_sentences(stream: Recogniser) -> None:
    """As a device would give it: 44.1 kHz, two channels. The sentences of the transcript are ends of utterances."""
    folder = resources() / "recordings"
    samples, rate = soundfile.read(folder / "two-voices.flac", dtype="float32")
    device = soxr.resample(samples, rate, 44100)
    reader = hear(stream, np.stack([device, 0.5 * device], axis=1), 44100)

    said = words((folder / "two-voices.txt").read_text(encoding="utf-8"))
    rate_of_errors = jiwer.wer(said, words(" ".join(reader.said)))
    print(f"word error rate of the stream: {100 * rate_of_errors:.1f} %")
    assert rate_of_errors < 0.10
    assert 5 <= len(reader.closed) <= 12
    assert max(one.committed[-1].end_s - one.committed[0].start_s for one in reader.closed) <= 12.0
    for ending in ("to do for them.", "than he was.", "amiable himself."):
        assert any(utterance.endswith(ending) for utterance in reader.said)


@pytest.mark.models
def test_a_stop_in_mid_word_keeps_the_words_before_it(stream: Recogniser) -> None:
    samples, _ = soundfile.read(
        resources() / "recordings" / "two-voices.flac", dtype="float32", frames=round(8.6 * SAMPLE_RATE)
    )
    heard = words(" ".join(hear(stream, samples).said))
    assert "what your country can do for" in heard
