"""The built-in recogniser on real sound: voice activity, streaming and whisper together."""

from __future__ import annotations

import re

import jiwer
import numpy as np
import pytest
import soundfile

from engine.asr.contract import SAMPLE_RATE, Transcript
from engine.asr.factory import create_recogniser
from engine.asr.streaming import StreamingRecogniser
from engine.audio import SpeechChunk, SpeechGate, SpeechPause
from engine.presets import load_preset, resources
from tests.engine.asr.helpers import Audio, Reader

pytestmark = pytest.mark.models
RECORDINGS = resources() / "recordings"


@pytest.fixture(scope="module")
def stream() -> StreamingRecogniser:
    told: list[float] = []
    made = create_recogniser(load_preset("laptop"), "en", lambda fraction, _text: told.append(fraction))
    assert told == sorted(told)
    assert told[-1] == 1.0
    assert isinstance(made, StreamingRecogniser)
    return made


def hear(stream: StreamingRecogniser, samples: Audio, block: int = 1600) -> Reader:
    """Everything from the gate to the closed utterances, in blocks as a microphone gives them."""
    stream.reset()
    gate, reader = SpeechGate(silence_ms=700), Reader()

    def through(events: list) -> None:  # type: ignore[type-arg]
        for event in events:
            if isinstance(event, SpeechChunk):
                reader.take(stream.push(event.samples, event.start_s))
            else:
                reader.take(stream.pause() if isinstance(event, SpeechPause) else stream.finish())

    for at in range(0, len(samples), block):
        through(gate.push(samples[at : at + block], at / SAMPLE_RATE))
    through(gate.finish())
    reader.take(stream.finish())
    return reader


def plain(text: str) -> str:
    """Text as a word error rate compares it: no case, no punctuation, one way to write a title."""
    return " ".join(re.sub(r"[^a-z']", " ", text.lower().replace("mr.", "mister")).split())


@pytest.mark.slow
def test_the_bundled_recording_is_heard_with_less_than_one_word_in_ten_wrong(stream: StreamingRecogniser) -> None:
    samples, rate = soundfile.read(RECORDINGS / "two-voices.flac", dtype="float32")
    assert rate == SAMPLE_RATE
    reader = hear(stream, samples)
    said = (RECORDINGS / "two-voices.txt").read_text(encoding="utf-8")
    error_rate = jiwer.wer(plain(said), plain(" ".join(reader.said)))
    print(f"word error rate through gate and streaming: {100 * error_rate:.1f} %")
    assert error_rate < 0.10
    assert 4 <= len(reader.closed) <= 12
    for utterance in reader.closed:
        assert utterance.committed[-1].end_s - utterance.committed[0].start_s < 16.0


@pytest.mark.parametrize("sound", ["silence", "noise"])
def test_a_minute_of_nothing_gives_no_text(stream: StreamingRecogniser, sound: str) -> None:
    random = np.random.default_rng(11)
    samples = np.zeros(60 * SAMPLE_RATE, np.float32)
    if sound == "noise":
        samples = random.normal(0, 0.05, len(samples)).astype(np.float32)
    reader = hear(stream, samples, block=16_000)
    assert reader.closed == []
    assert reader.open is None


@pytest.mark.parametrize("sound", ["silence", "noise", "hum"])
def test_what_slips_through_the_gate_gives_no_text_either(stream: StreamingRecogniser, sound: str) -> None:
    random = np.random.default_rng(11)
    at = np.arange(5 * SAMPLE_RATE) / SAMPLE_RATE
    samples = {
        "silence": np.zeros_like(at),
        "noise": random.normal(0, 0.02, len(at)),
        "hum": 0.1 * np.sin(2 * np.pi * 50 * at),
    }[sound].astype(np.float32)
    stream.reset()
    transcripts: list[Transcript] = [stream.push(samples, 0.0), stream.finish()]
    words = [word.text for one in transcripts for utterance in one.utterances for word in utterance.committed]
    assert words == []
