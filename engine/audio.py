"""Sound on its way in: any format to 16 kHz mono on the session clock, and the gate that lets only speech through."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import soxr
from numpy.typing import NDArray

from engine.asr.contract import SAMPLE_RATE
from engine.models import resolve

Samples = NDArray[np.float32]
JITTER_S = 0.02  # a block may start this far from where the last one ended and still follow it
LOUDEST = 8.0  # full scale is 1; what is far beyond it is no sound, and would stay in the recurrent state for ever


@dataclass(frozen=True, slots=True)
class Block:
    """Contiguous mono samples at 16 kHz; `start_s` on the session clock."""

    samples: Samples
    start_s: float

    @property
    def end_s(self) -> float:
        return self.start_s + len(self.samples) / SAMPLE_RATE


class SessionAudio:
    """Blocks as the device gives them, to mono at 16 kHz on the session clock.

    The clock counts frames within a stretch of contiguous audio, so it does not drift. A block that starts later than
    the last one ended opens a new stretch (the gap stays on the clock); what starts earlier is cut off.
    `repaired` counts samples that were no sound (not finite, or far beyond full scale) and became silence, `late_s` the
    audio that came twice.
    """

    def __init__(self) -> None:
        self.repaired = 0
        self.late_s = 0.0
        self._format: tuple[int, int] | None = None
        self._resampler: soxr.ResampleStream | None = None
        self._origin_s = 0.0
        self._frames_in = 0
        self._samples_out = 0

    @property
    def clock_s(self) -> float:
        """End of the audio taken so far."""
        return self._origin_s + self._frames_in / self._format[0] if self._format else 0.0

    def convert(self, pcm: bytes, sample_rate: int, channels: int, start_s: float) -> list[Block]:
        """Convert interleaved float32 frames. Raises `ValueError` for a format that no device has, or no time."""
        if not (1 <= channels <= 64 and 1000 <= sample_rate <= 768_000):
            raise ValueError(f"audio with {channels} channels at {sample_rate} Hz")
        if len(pcm) % (4 * channels):
            raise ValueError(f"{len(pcm)} bytes are no whole frames of {channels} channels")
        if not math.isfinite(start_s):
            raise ValueError(f"audio at the time {start_s}")
        frames = self._downmix(np.frombuffer(pcm, np.float32).reshape(-1, channels))
        blocks: list[Block] = []
        late = round((self.clock_s - start_s) * sample_rate) if self._format else 0
        if late > JITTER_S * sample_rate:
            self.late_s += min(late, len(frames)) / sample_rate
            frames, start_s = frames[late:], self.clock_s
            if not len(frames):
                return blocks
        follows = self._resampler is not None and start_s - self.clock_s <= JITTER_S
        if not follows or self._format != (sample_rate, channels):
            blocks += self.flush()
            self._open(sample_rate, channels, max(start_s, self.clock_s) if self._format else start_s)
        self._frames_in += len(frames)
        return [*blocks, *self._emit(frames, last=False)]

    def flush(self) -> list[Block]:
        """What the resampler still holds; the next block opens a new stretch."""
        rest = self._emit(np.zeros(0, np.float32), last=True) if self._format and self._resampler else []
        self._resampler = None
        return rest

    def _downmix(self, frames: Samples) -> Samples:
        broken = ~(np.abs(frames) <= LOUDEST)  # also true of NaN
        if broken.any():
            self.repaired += int(broken.sum())
            frames = np.where(broken, np.float32(0), frames)
        return frames.mean(axis=1, dtype=np.float32) if frames.shape[1] > 1 else frames[:, 0].copy()

    def _open(self, sample_rate: int, channels: int, start_s: float) -> None:
        self._format = (sample_rate, channels)
        self._origin_s, self._frames_in, self._samples_out = start_s, 0, 0
        self._resampler = soxr.ResampleStream(sample_rate, SAMPLE_RATE, 1, dtype="float32")

    def _emit(self, frames: Samples, last: bool) -> list[Block]:
        assert self._format is not None
        if self._format[0] == SAMPLE_RATE:
            samples = frames
        else:
            assert self._resampler is not None
            samples = self._resampler.resample_chunk(frames, last=last)
        start_s = self._origin_s + self._samples_out / SAMPLE_RATE
        self._samples_out += len(samples)
        return [Block(samples, start_s)] if len(samples) else []


class VoiceActivity:
    """Silero VAD v6: the probability of speech in each window of 512 samples (32 ms)."""

    WINDOW = 512
    CONTEXT = 64

    def __init__(self) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self._model = onnxruntime.InferenceSession(
            str(resolve("silero-vad")), options, providers=["CPUExecutionProvider"]
        )
        self.reset()

    def reset(self) -> None:
        """Forget what was heard."""
        self._h = self._c = np.zeros((1, 1, 128), np.float32)
        self._context = np.zeros(self.CONTEXT, np.float32)

    def __call__(self, windows: Samples) -> NDArray[np.float32]:
        """Probabilities [windows] of samples [windows, 512]; state and context go over from call to call."""
        ends = windows[:, -self.CONTEXT :]
        contexts = np.concatenate([self._context[None], ends[:-1]])
        inputs = {"input": np.concatenate([contexts, windows], axis=1), "h": self._h, "c": self._c}
        probabilities, self._h, self._c = self._model.run(None, inputs)
        self._context = ends[-1].copy()
        return np.asarray(probabilities, np.float32).reshape(-1)


@dataclass(frozen=True, slots=True)
class SpeechChunk:
    """Audio with speech in it (or the short pauses inside speech)."""

    samples: Samples
    start_s: float

    @property
    def end_s(self) -> float:
        return self.start_s + len(self.samples) / SAMPLE_RATE


@dataclass(frozen=True, slots=True)
class SpeechPause:
    """The speaker has paused for a moment; the pause itself has been let through."""

    at_s: float


@dataclass(frozen=True, slots=True)
class SpeechEnd:
    """Silence has lasted long enough to end the utterance; `at_s`: where the speech ended."""

    at_s: float


GateEvent = SpeechChunk | SpeechPause | SpeechEnd


class SpeechGate:
    """Lets speech through, with a little lead and trail, and says when it has ended.

    Speech begins where a window's probability reaches `ONSET` and goes on while it stays above `OFFSET`. The silence
    behind it is let through for `TRAIL_S`, which makes a `SpeechPause`, and then kept back: speech that resumes within
    `silence_ms` gets it back, so that audio is contiguous within an utterance; otherwise the utterance ends.
    """

    ONSET = 0.5
    OFFSET = 0.35
    LEAD_WINDOWS = 8
    TRAIL_S = 0.35

    def __init__(self, *, silence_ms: int, vad: VoiceActivity | None = None) -> None:
        self._silence_s = silence_ms / 1000
        self._vad = vad or VoiceActivity()
        self._rest = np.zeros(0, np.float32)
        self._rest_s = 0.0
        self._lead: deque[SpeechChunk] = deque(maxlen=self.LEAD_WINDOWS)
        self._kept: list[SpeechChunk] = []
        self._spoke_until_s = 0.0
        self.speech = False

    def push(self, samples: Samples, start_s: float) -> list[GateEvent]:
        """Take audio that follows, or starts later (then what lies between is silence)."""
        events: list[GateEvent] = []
        if abs(start_s - self._clock_s) > JITTER_S:
            events += self._jump(start_s)
        if not len(self._rest):
            self._rest_s = start_s
        samples = np.concatenate([self._rest, samples])
        whole = len(samples) // VoiceActivity.WINDOW * VoiceActivity.WINDOW
        windows = samples[:whole].reshape(-1, VoiceActivity.WINDOW)
        passed: list[GateEvent] = []
        for at, probability in enumerate(self._vad(windows) if len(windows) else ()):
            window = SpeechChunk(windows[at], self._rest_s + at * VoiceActivity.WINDOW / SAMPLE_RATE)
            self._take(window, float(probability), passed)
        self._rest, self._rest_s = samples[whole:], self._rest_s + whole / SAMPLE_RATE
        return [*events, *joined(passed)]

    def finish(self) -> list[GateEvent]:
        """The end of the audio: what is left of speech, and its end."""
        events: list[GateEvent] = []
        if self.speech:
            if len(self._rest) and not self._kept:
                events.append(SpeechChunk(self._rest, self._rest_s))
            events.append(SpeechEnd(self._spoke_until_s))
        self._forget()
        return events

    @property
    def _clock_s(self) -> float:
        return self._rest_s + len(self._rest) / SAMPLE_RATE

    def _take(self, window: SpeechChunk, probability: float, passed: list[GateEvent]) -> None:
        """Sort one window into what passes, what leads and what is kept back."""
        if probability >= (self.OFFSET if self.speech else self.ONSET):
            passed += [*self._lead, *self._kept, window]
            self._lead.clear()
            self._kept.clear()
            self.speech, self._spoke_until_s = True, window.end_s
            return
        if not self.speech:
            self._lead.append(window)
            return
        silent_s = window.end_s - self._spoke_until_s
        if silent_s <= self.TRAIL_S:
            passed.append(window)
        else:
            if not self._kept:
                passed.append(SpeechPause(self._spoke_until_s))
            self._kept.append(window)
        if silent_s >= self._silence_s:
            passed.append(SpeechEnd(self._spoke_until_s))
            self.speech = False
            self._lead.extend(self._kept)
            self._kept.clear()

    def _jump(self, start_s: float) -> list[GateEvent]:
        """Audio was lost: a long hole ends the utterance, a short one is a pause inside it."""
        if self.speech and start_s - self._spoke_until_s < self._silence_s:
            events = [SpeechChunk(self._rest, self._rest_s)] if len(self._rest) else []
            self._vad.reset()
            self._kept.clear()
            self._rest = np.zeros(0, np.float32)
            return list(events)
        return self.finish()

    def _forget(self) -> None:
        self._vad.reset()
        self._lead.clear()
        self._kept.clear()
        self._rest = np.zeros(0, np.float32)
        self.speech = False


def joined(events: Iterable[GateEvent]) -> list[GateEvent]:
    """The same events with chunks that follow one another made into one."""
    result: list[GateEvent] = []
    run: list[SpeechChunk] = []

    def close() -> None:
        if run:
            result.append(SpeechChunk(np.concatenate([chunk.samples for chunk in run]), run[0].start_s))
            run.clear()

    for event in events:
        if not isinstance(event, SpeechChunk) or (run and abs(event.start_s - run[-1].end_s) > JITTER_S):
            close()
        if isinstance(event, SpeechChunk):
            run.append(event)
        else:
            result.append(event)
    close()
    return result
