"""Sound on its way in: the session clock, whatever the device sends, and the gate that lets only speech through."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.asr.contract import SAMPLE_RATE
from engine.audio import (
    JITTER_S,
    Block,
    GateEvent,
    SessionAudio,
    SpeechChunk,
    SpeechEnd,
    SpeechGate,
    SpeechPause,
    VoiceActivity,
    joined,
)
from engine.presets import resources
from tests.engine.asr.helpers import Audio


def tone(seconds: float, rate: int, channels: int = 1, hertz: float = 440.0, first_s: float = 0.0) -> bytes:
    """Interleaved frames of a sine, the same in every channel."""
    at = first_s + np.arange(round(seconds * rate)) / rate
    wave = (0.5 * np.sin(2 * np.pi * hertz * at)).astype(np.float32)
    return np.repeat(wave[:, None], channels, axis=1).tobytes()


def total(blocks: list[Block]) -> Audio:
    return np.concatenate([block.samples for block in blocks]) if blocks else np.zeros(0, np.float32)


# ------------------------------------------------------------ the session clock


@pytest.mark.parametrize("rate", [8000, 11025, 16000, 22050, 44100, 48000, 96000])
@pytest.mark.parametrize("channels", [1, 2, 6])
def test_every_format_becomes_the_same_sound(rate: int, channels: int) -> None:
    audio, blocks = SessionAudio(), []
    for step in range(5):
        blocks += audio.convert(tone(0.4, rate, channels, first_s=step * 0.4), rate, channels, step * 0.4)
    assert audio.clock_s == pytest.approx(2.0)
    blocks += audio.flush()
    samples = total(blocks)
    assert len(samples) == pytest.approx(2 * SAMPLE_RATE, abs=16)
    assert samples.dtype == np.float32
    at = np.arange(len(samples)) / SAMPLE_RATE
    expected = 0.5 * np.sin(2 * np.pi * 440 * at)
    inside = slice(800, -800)
    assert np.abs(samples[inside] - expected[inside]).max() < 0.01
    for before, after in pairwise(blocks):
        assert after.start_s == pytest.approx(before.end_s, abs=1e-9)


def test_channels_are_averaged() -> None:
    frames = np.array([[0.2, 0.4], [-0.2, 0.2]], np.float32)
    (block,) = SessionAudio().convert(frames.tobytes(), 16000, 2, 3.0)
    assert block.samples == pytest.approx([0.3, 0.0])
    assert block.start_s == 3.0


def test_an_hour_at_44100_hz_does_not_drift() -> None:
    audio, samples, end_s = SessionAudio(), 0, 0.0
    minute = np.zeros(60 * 44100, np.float32).tobytes()
    for number in range(60):
        for block in audio.convert(minute, 44100, 1, 60.0 * number):
            samples += len(block.samples)
            end_s = block.end_s
    for block in audio.flush():
        samples += len(block.samples)
        end_s = block.end_s
    assert audio.clock_s == 3600.0
    assert end_s == pytest.approx(3600.0, abs=0.001)
    assert samples == pytest.approx(3600 * SAMPLE_RATE, abs=16)
    assert audio.late_s == 0.0


@pytest.mark.parametrize("rate", [16000, 44100])
def test_a_gap_stays_on_the_clock(rate: int) -> None:
    audio = SessionAudio()
    blocks = audio.convert(tone(1, rate), rate, 1, 0.0)
    blocks += audio.convert(tone(1, rate), rate, 1, 3.0)
    blocks += audio.flush()
    assert audio.clock_s == 4.0
    assert len(total(blocks)) == pytest.approx(2 * SAMPLE_RATE, abs=16)
    second = [block for block in blocks if block.start_s >= 2.0]
    assert second[0].start_s == 3.0
    assert max(block.end_s for block in blocks if block.start_s < 2.0) == pytest.approx(1.0, abs=0.001)
    assert second[-1].end_s == pytest.approx(4.0, abs=0.001)


@pytest.mark.parametrize("rate", [16000, 48000])
def test_what_comes_twice_is_cut_off(rate: int) -> None:
    audio = SessionAudio()
    blocks = audio.convert(tone(1, rate), rate, 1, 0.0)
    blocks += audio.convert(tone(1, rate), rate, 1, 0.5)
    assert audio.convert(tone(0.1, rate), rate, 1, 0.2) == []
    blocks += audio.flush()
    assert audio.clock_s == 1.5
    assert audio.late_s == pytest.approx(0.6)
    assert len(total(blocks)) == pytest.approx(1.5 * SAMPLE_RATE, abs=16)


def test_jitter_moves_nothing() -> None:
    audio, blocks = SessionAudio(), []
    for tenth in range(30):
        jitter_s = 0.009 * (-1) ** tenth
        blocks += audio.convert(tone(0.1, 48000), 48000, 1, max(0.0, tenth / 10 + jitter_s))
    blocks += audio.flush()
    assert audio.clock_s == pytest.approx(3.009)  # from the first block on frames are counted
    assert audio.late_s == 0.0
    assert len(total(blocks)) == pytest.approx(3 * SAMPLE_RATE, abs=16)


@pytest.mark.parametrize("early_s", [0.0, 0.015, -0.015])
def test_another_device_in_mid_session_goes_on_with_the_clock(early_s: float) -> None:
    audio = SessionAudio()
    blocks = audio.convert(tone(1, 44100, 2), 44100, 2, 0.0)
    blocks += audio.convert(tone(1, 16000, 1), 16000, 1, 1.0 - early_s)
    blocks += audio.convert(tone(1, 48000, 6), 48000, 6, 2.0)
    blocks += audio.flush()
    assert audio.clock_s == pytest.approx(3.0, abs=2 * JITTER_S)
    assert len(total(blocks)) == pytest.approx(3 * SAMPLE_RATE, abs=50)
    for before, after in pairwise(blocks):
        assert after.start_s >= before.end_s - 0.001


def test_audio_goes_on_after_a_flush() -> None:
    audio = SessionAudio()
    blocks = audio.convert(tone(1, 44100), 44100, 1, 0.0) + audio.flush()
    assert audio.flush() == []
    blocks += audio.convert(tone(1, 44100), 44100, 1, 1.0) + audio.flush()
    assert audio.clock_s == 2.0
    assert len(total(blocks)) == pytest.approx(2 * SAMPLE_RATE, abs=32)


@pytest.mark.parametrize("rate", [16000, 44100])
def test_broken_samples_are_repaired_and_counted(rate: int) -> None:
    frames = np.frombuffer(tone(1, rate), np.float32).copy()
    frames[100:104] = [np.nan, np.inf, -np.inf, 3e38]
    audio = SessionAudio()
    blocks = audio.convert(frames.tobytes(), rate, 1, 0.0) + audio.flush()
    assert audio.repaired == 4
    assert np.abs(total(blocks)).max() < 2.0


@pytest.mark.parametrize(
    ("pcm", "rate", "channels"),
    [
        (bytes(8), 16000, 0),
        (bytes(8), 16000, 65),
        (bytes(8), 0, 1),
        (bytes(8), 10_000_000, 1),
        (bytes(7), 16000, 1),
        (bytes(12), 16000, 2),
    ],
)
def test_bad_formats_are_refused_and_change_nothing(pcm: bytes, rate: int, channels: int) -> None:
    audio = SessionAudio()
    audio.convert(tone(1, 16000), 16000, 1, 0.0)
    with pytest.raises(ValueError):
        audio.convert(pcm, rate, channels, 1.0)
    assert audio.clock_s == 1.0
    (block,) = audio.convert(tone(1, 16000), 16000, 1, 1.0)
    assert block.start_s == 1.0


@pytest.mark.parametrize("start_s", [float("nan"), float("inf"), float("-inf")])
def test_a_time_that_is_none_is_refused(start_s: float) -> None:
    audio = SessionAudio()
    with pytest.raises(ValueError):
        audio.convert(tone(1, 16000), 16000, 1, start_s)
    assert audio.clock_s == 0.0


def test_no_frames_are_no_block() -> None:
    audio = SessionAudio()
    assert audio.convert(b"", 48000, 2, 0.0) == []
    assert audio.flush() == []


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([(8000, 1), (16000, 1), (16000, 2), (44100, 2)]),
            st.integers(0, 3000),
            st.floats(-0.3, 0.3),
        ),
        max_size=12,
    )
)
def test_the_clock_never_goes_back(pieces: list[tuple[tuple[int, int], int, float]]) -> None:
    audio, at_s, end_s = SessionAudio(), 0.0, 0.0
    for (rate, channels), frames, shift_s in pieces:
        start_s = max(0.0, at_s + shift_s)
        before_s = audio.clock_s
        for block in audio.convert(bytes(4 * frames * channels), rate, channels, start_s):
            assert block.start_s >= end_s - 0.001
            end_s = block.end_s
        assert audio.clock_s >= before_s
        at_s = max(at_s, start_s + frames / rate)
    for block in audio.flush():
        assert block.start_s >= end_s - 0.001
        end_s = block.end_s
    assert end_s <= audio.clock_s + 0.001


# ------------------------------------------------------------ the gate, with a voice by script


class Voice(VoiceActivity):
    """Hears speech where samples are 1, whatever they sound like."""

    def __init__(self) -> None:
        self.resets = 0

    def reset(self) -> None:
        self.resets += 1

    def __call__(self, windows: Audio) -> Audio:
        return windows.mean(axis=1)


WINDOW_S = VoiceActivity.WINDOW / SAMPLE_RATE


def script(*pieces: tuple[float, float]) -> Audio:
    """Samples of pieces (seconds, value); lengths are brought to whole windows."""
    return np.concatenate([np.full(round(s / WINDOW_S) * VoiceActivity.WINDOW, v, np.float32) for s, v in pieces])


def gate(silence_ms: int = 700) -> SpeechGate:
    return SpeechGate(silence_ms=silence_ms, vad=Voice())


def run(through: SpeechGate, samples: Audio, start_s: float = 0.0, block: int = 1600) -> list[GateEvent]:
    events: list[GateEvent] = []
    for at in range(0, len(samples), block):
        events += through.push(samples[at : at + block], start_s + at / SAMPLE_RATE)
    return joined(events)


def kinds(events: list[GateEvent]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_speech_passes_with_lead_and_trail_and_ends() -> None:
    chunk, pause, end = run(gate(), script((1.024, 0), (2.048, 1), (1.024, 0)))
    assert isinstance(chunk, SpeechChunk)
    assert isinstance(pause, SpeechPause)
    assert isinstance(end, SpeechEnd)
    assert chunk.start_s == pytest.approx(1.024 - SpeechGate.LEAD_WINDOWS * WINDOW_S)
    assert chunk.end_s == pytest.approx(3.072 + SpeechGate.TRAIL_S, abs=WINDOW_S)
    assert pause.at_s == end.at_s == pytest.approx(3.072)


def test_a_short_pause_is_given_back_when_speech_goes_on() -> None:
    events = run(gate(), script((1.024, 1), (0.512, 0), (1.024, 1), (1.024, 0)))
    assert kinds(events) == ["SpeechChunk", "SpeechPause", "SpeechChunk", "SpeechPause", "SpeechEnd"]
    first, _, second, *_ = events
    assert isinstance(first, SpeechChunk)
    assert isinstance(second, SpeechChunk)
    assert second.start_s == pytest.approx(first.end_s)  # contiguous: nothing of the pause is missing


def test_the_end_of_one_utterance_leads_the_next() -> None:
    events = run(gate(), script((1.024, 1), (0.768, 0), (1.024, 1)))
    assert kinds(events) == ["SpeechChunk", "SpeechPause", "SpeechEnd", "SpeechChunk"]
    first, second = events[0], events[3]
    assert isinstance(first, SpeechChunk)
    assert isinstance(second, SpeechChunk)
    assert second.start_s >= first.end_s - 1e-9
    assert second.start_s <= 1.792 - WINDOW_S


def test_a_weak_voice_holds_what_a_strong_one_began() -> None:
    assert run(gate(), script((1.024, 0.45))) == []
    assert kinds(run(gate(), script((0.512, 0.6), (2.048, 0.45)))) == ["SpeechChunk"]


def test_silence_gives_nothing() -> None:
    through = gate()
    assert run(through, script((60, 0))) == []
    assert through.finish() == []
    assert not through.speech


def test_the_end_of_the_audio_keeps_the_last_moment() -> None:
    through = gate()
    samples = np.concatenate([script((1.024, 1)), np.ones(300, np.float32)])
    events = joined([*through.push(samples, 0.0), *through.finish()])
    assert kinds(events) == ["SpeechChunk", "SpeechEnd"]
    assert isinstance(events[0], SpeechChunk)
    assert len(events[0].samples) == len(samples)
    assert through.finish() == []


def test_a_long_hole_ends_the_utterance_and_a_short_one_does_not() -> None:
    for hole_s, ends in ((0.3, False), (5.0, True)):
        through = gate()
        events = run(through, script((1.024, 1)))
        events += run(through, script((1.024, 1)), 1.024 + hole_s)
        assert ("SpeechEnd" in kinds(events)) is ends
        last = events[-1]
        assert isinstance(last, SpeechChunk)
        assert last.start_s == pytest.approx(1.024 + hole_s)


def test_a_hole_in_a_pause_does_not_bring_the_pause_back_out_of_order() -> None:
    through = gate()
    events = run(through, np.concatenate([script((1.024, 1), (0.512, 0)), np.zeros(200, np.float32)]))
    events += run(through, script((1.024, 1)), 1.65)
    starts = [event.start_s for event in events if isinstance(event, SpeechChunk)]
    ends = [event.end_s for event in events if isinstance(event, SpeechChunk)]
    assert starts == sorted(starts)
    assert all(start >= end - JITTER_S for start, end in zip(starts[1:], ends, strict=False))
    assert starts[-1] == pytest.approx(1.65)


@given(
    st.lists(st.tuples(st.floats(0.03, 1.5), st.sampled_from([0.0, 0.45, 1.0])), max_size=8),
    st.lists(st.integers(1, 9000), max_size=20),
    st.sampled_from([200, 700]),
)
def test_the_gate_does_not_depend_on_block_sizes(
    pieces: list[tuple[float, float]], sizes: list[int], silence_ms: int
) -> None:
    samples = script((0.1, 0.0), *pieces)
    whole, parts = gate(silence_ms), gate(silence_ms)
    expected = joined([*whole.push(samples, 0.0), *whole.finish()])
    events, at = [], 0
    for size in [*sizes, len(samples)]:
        events += parts.push(samples[at : at + size], at / SAMPLE_RATE)
        at = min(len(samples), at + size)
    found = joined([*events, *parts.finish()])
    assert kinds(found) == kinds(expected)
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, SpeechChunk) and isinstance(other, SpeechChunk):
            assert one.start_s == pytest.approx(other.start_s)
            assert np.array_equal(one.samples, other.samples)
    speech = sum(len(event.samples) for event in found if isinstance(event, SpeechChunk))
    assert speech >= sum(round(s / WINDOW_S) * VoiceActivity.WINDOW for s, v in pieces if v == 1.0)


def test_joined_keeps_order_and_holes() -> None:
    def chunk(start_s: float) -> SpeechChunk:
        return SpeechChunk(np.ones(1600, np.float32), start_s)

    events = joined([chunk(0.0), chunk(0.1), SpeechPause(0.2), chunk(0.2), chunk(0.9), SpeechEnd(1.0)])
    assert kinds(events) == ["SpeechChunk", "SpeechPause", "SpeechChunk", "SpeechChunk", "SpeechEnd"]
    assert [len(event.samples) for event in events if isinstance(event, SpeechChunk)] == [3200, 1600, 1600]
    assert joined([]) == []


# ------------------------------------------------------------ the real model


def spoken_s(samples: Audio) -> float:
    """Seconds that the gate lets through with the real voice activity model."""
    through = SpeechGate(silence_ms=700)
    events = [*run(through, samples), *through.finish()]
    return sum(event.end_s - event.start_s for event in events if isinstance(event, SpeechChunk))


@pytest.mark.models
def test_the_model_hears_speech() -> None:
    samples, _ = soundfile.read(
        resources() / "recordings" / "two-voices.flac", dtype="float32", frames=12 * SAMPLE_RATE
    )
    assert 8.0 <= spoken_s(samples) <= 12.0
    assert spoken_s(0.1 * samples) >= 8.0


@pytest.mark.models
@pytest.mark.parametrize("sound", ["silence", "white noise", "faint noise", "hum", "click"])
def test_the_model_hears_nothing_else(sound: str) -> None:
    seconds, random = 20, np.random.default_rng(7)
    at = np.arange(seconds * SAMPLE_RATE) / SAMPLE_RATE
    noise = random.normal(0, 1, len(at))
    samples = {
        "silence": np.zeros_like(at),
        "white noise": 0.1 * noise,
        "faint noise": 0.001 * noise,
        "hum": 0.2 * np.sin(2 * np.pi * 50 * at) + 0.1 * np.sin(2 * np.pi * 150 * at),
        "click": np.where(at % 1.0 < 1 / SAMPLE_RATE, 0.9, 0.0),
    }[sound]
    assert spoken_s(samples.astype(np.float32)) == 0.0


@pytest.mark.models
def test_windows_at_once_give_what_they_give_one_by_one() -> None:
    samples, _ = soundfile.read(resources() / "recordings" / "two-voices.flac", dtype="float32", frames=512 * 60)
    windows = samples.reshape(-1, VoiceActivity.WINDOW)
    voice = VoiceActivity()
    at_once = voice(windows)
    voice.reset()
    one_by_one = np.concatenate([voice(window[None]) for window in windows])
    assert at_once == pytest.approx(one_by_one, abs=1e-4)
    assert at_once.max() > 0.5
