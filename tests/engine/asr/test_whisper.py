"""The whisper decoder: what it must leave out, and what it hears in the bundled recording."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from engine.asr.contract import SAMPLE_RATE, Word
from engine.asr.whisper import WhisperDecoder, without_squeezed
from engine.models import resolve
from engine.presets import resources
from tests.engine.asr.helpers import Audio, text


def timed(*spans: tuple[str, float, float]) -> list[Word]:
    return [Word(*span) for span in spans]


def test_words_without_any_time_are_not_in_the_audio() -> None:
    heard = timed(
        ("And", 0.0, 0.4), ("so", 0.4, 0.6), ("and", 0.6, 0.6), ("so", 0.6, 0.6), ("my", 0.6, 0.6), ("x", 0.6, 1)
    )
    assert text(without_squeezed(heard)) == "And so"


def test_a_short_word_or_two_are_in_the_audio() -> None:
    heard = timed(
        ("it", 0.0, 0.02),
        ("is", 0.02, 0.04),
        ("a", 0.04, 0.2),
        ("pity", 0.2, 0.2),
        ("that", 0.2, 0.2),
        ("so", 0.2, 0.5),
    )
    assert without_squeezed(heard) == heard


# ------------------------------------------------------------ the real model


@pytest.fixture(scope="module")
def decoder() -> WhisperDecoder:
    return WhisperDecoder(resolve("whisper-tiny.en"))


@pytest.fixture(scope="module")
def recording() -> Audio:
    samples, rate = soundfile.read(resources() / "recordings" / "two-voices.flac", dtype="float32")
    assert rate == SAMPLE_RATE
    return np.asarray(samples, np.float32)


@pytest.mark.models
@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.1, ""),
        (1.0, ""),
        (2.7, ""),
        (8.0, "And so my fellow Americans"),
        (11.0, "ask not what your country can do for you"),
        (29.5, "what you can do for your country"),
    ],
)
def test_words_are_clean_and_follow_one_another_in_the_window(
    decoder: WhisperDecoder, recording: Audio, seconds: float, said: str
) -> None:
    heard = decoder.decode(recording[: round(seconds * SAMPLE_RATE)], ())
    assert all(word.text == word.text.strip() != "" for word in heard)
    edges = [0.0, *(edge for word in heard for edge in (word.start_s, word.end_s)), seconds]
    assert edges == sorted(edges)
    assert said in text(heard).replace(",", "")


@pytest.mark.models
def test_a_compound_is_one_word(decoder: WhisperDecoder, recording: Audio) -> None:
    heard = [word.text for word in decoder.decode(recording[20 * SAMPLE_RATE : 29 * SAMPLE_RATE], ())]
    assert "cold-hearted" in heard
    assert not any(word.startswith("-") for word in heard)


@pytest.mark.models
@pytest.mark.parametrize("end_s", [1.6, 2.4, 3.1, 4.0, 5.2])
def test_a_window_cut_in_mid_sentence_does_not_make_it_repeat_itself(
    decoder: WhisperDecoder, recording: Audio, end_s: float
) -> None:
    heard = [word.text.strip(".,").lower() for word in decoder.decode(recording[: round(end_s * SAMPLE_RATE)], ())]
    assert heard.count("so") <= 1
    assert heard.count("fellow") <= 1


@pytest.mark.models
@pytest.mark.parametrize("sound", ["silence", "faint noise", "noise", "hum", "clicks"])
def test_what_is_no_speech_has_no_words(decoder: WhisperDecoder, sound: str) -> None:
    random, at = np.random.default_rng(5), np.arange(4 * SAMPLE_RATE) / SAMPLE_RATE
    noise = random.normal(0, 1, len(at))
    samples = {
        "silence": np.zeros_like(at),
        "faint noise": 0.001 * noise,
        "noise": 0.05 * noise,
        "hum": 0.2 * np.sin(2 * np.pi * 50 * at),
        "clicks": np.where(at % 0.5 < 1 / SAMPLE_RATE, 0.9, 0.0),
    }[sound].astype(np.float32)
    assert decoder.decode(samples, ()) == []
    assert decoder.decode(samples[: SAMPLE_RATE // 2], ()) == []
