"""A session without models: a voice, a recogniser and translations by script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import count

import numpy as np

from engine.alignatt.policy import Policy
from engine.asr.contract import SAMPLE_RATE, Recogniser, Transcript, Utterance, Word
from engine.audio import SpeechGate, VoiceActivity
from engine.messages import Audio, Caption, Error, Event, Stop, Stopped
from engine.mt.contract import Cancel, CaptionState, TranslationSession
from engine.mt.session import LocalTranslationSession
from engine.session import SpeakerSession
from tests.engine.asr.helpers import Audio as Samples
from tests.engine.mt.scripted import ScriptedTranslator

WORD_S = 0.5
BLOCK_S = 0.512  # whole windows of the voice activity model
LIMIT_S = 60.0  # for a machine under load, not a measure


class Voice(VoiceActivity):
    """Hears speech where samples are 1, whatever they sound like."""

    def __init__(self) -> None:
        pass

    def reset(self) -> None:
        pass

    def __call__(self, windows: Samples) -> Samples:
        return windows.mean(axis=1)


class ScriptedRecogniser:
    """Hears a word of its text in every half second; the two newest are tail, every full stop closes an utterance.

    `fail_at`: numbers of the pushes (from 1) that raise. `fail_finish`: how often `finish` raises.
    """

    def __init__(self, said: str, fail_at: Sequence[int] = (), fail_finish: int = 0) -> None:
        self.coalesce = True
        self.fail_at, self.fail_finish = fail_at, fail_finish
        self.chunks: list[float] = []
        self.closed = False
        self._said = said.split()
        self.reset()

    def reset(self) -> None:
        self._samples = self._first = self._id = 0

    def push(self, audio_chunk: Samples, start_s: float) -> Transcript:
        self.chunks.append(len(audio_chunk) / SAMPLE_RATE)
        self._samples += len(audio_chunk)
        if len(self.chunks) in self.fail_at:
            raise RuntimeError("out of order")
        return self._transcript(tail=2, final=False)

    def pause(self) -> Transcript:
        return Transcript((), self._samples / SAMPLE_RATE)

    def finish(self) -> Transcript:
        if self.fail_finish:
            self.fail_finish -= 1
            raise RuntimeError("out of order")
        return self._transcript(tail=0, final=True)

    def close(self) -> None:
        self.closed = True

    def _transcript(self, tail: int, final: bool) -> Transcript:
        heard = min(len(self._said), int(self._samples / SAMPLE_RATE / WORD_S))
        words = tuple(Word(self._said[at], at * WORD_S, (at + 1) * WORD_S) for at in range(heard))
        changed: list[Utterance] = []
        for at in range(self._first, heard - tail):
            if words[at].text.endswith("."):
                changed.append(self._close(words, at + 1))
        if final and self._first < heard:
            changed.append(self._close(words, heard))
        elif self._first < heard:
            border = max(self._first, heard - tail)
            changed.append(Utterance(self._id, words[self._first : border], words[border:]))
        return Transcript(tuple(changed), self._samples / SAMPLE_RATE)

    def _close(self, words: tuple[Word, ...], end: int) -> Utterance:
        closed = Utterance(self._id, words[self._first : end], final=True)
        self._first, self._id = end, self._id + 1
        return closed


class ScriptedTranslation:
    """`TranslationSession` that asks a function for the stable text of update 0, 1, 2, …; it may raise."""

    def __init__(self, answer: Callable[[int, bool], str]) -> None:
        self._answer = answer
        self._numbers = count()
        self.closed = False

    def update(
        self,
        utterance_id: int,
        committed: Sequence[Word],
        tail: Sequence[Word],
        clock_s: float,
        final: bool,
        cancel: Cancel,
    ) -> CaptionState:
        stable = self._answer(next(self._numbers), final)
        return CaptionState(utterance_id, stable, "", len(committed) or None, final, "stop", engine_call=True)

    def close(self) -> None:
        self.closed = True


class Run:
    """One running session and everything it says."""

    def __init__(
        self,
        recogniser: Recogniser,
        translation: TranslationSession | None = None,
        *,
        live: bool = True,
        translator: ScriptedTranslator | None = None,
    ) -> None:
        self.events: list[Event] = []
        self.running_at_the_end: bool | None = None
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._at_s = 0.0
        if translation is None:
            translation = LocalTranslationSession(translator or ScriptedTranslator(), Policy(), "one", "en", "de")
        gate = SpeechGate(silence_ms=700, vad=Voice())
        self.session = SpeakerSession("one", recogniser, translation, gate, self._emit, live=live)

    def _emit(self, event: Event) -> None:
        if isinstance(event, Stopped):
            self.running_at_the_end = self.session.running
            self._stopped.set()
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def speak(self, blocks: int, value: float = 1.0) -> None:
        """Push blocks of speech (or silence: 0)."""
        for _ in range(blocks):
            samples = np.full(round(BLOCK_S * SAMPLE_RATE), value, np.float32)
            self.session.push(Audio(samples.tobytes(), SAMPLE_RATE, 1, self._at_s))
            self._at_s += BLOCK_S

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is true of what was said."""
        with self._changed:
            assert self._changed.wait_for(condition, LIMIT_S), self.events

    def stop(self) -> list[Event]:
        """Stop, wait for the end, and give everything that was said."""
        self.session.push(Stop())
        assert self._stopped.wait(LIMIT_S), self.events
        self.session.join(LIMIT_S)
        return self.events

    @property
    def captions(self) -> list[Caption]:
        return [event for event in self.events if isinstance(event, Caption)]

    @property
    def finals(self) -> list[Caption]:
        return [caption for caption in self.captions if caption.final]

    @property
    def errors(self) -> list[tuple[str, str]]:
        return [(event.code, event.message) for event in self.events if isinstance(event, Error)]


def append_only(captions: Sequence[Caption]) -> bool:
    """Stable text only grows, utterances follow one another, and nothing follows a final."""
    shown: dict[int, str] = {}
    closed = -1
    for caption in captions:
        if caption.utterance_id <= closed or not caption.stable.startswith(shown.get(caption.utterance_id, "")):
            return False
        shown[caption.utterance_id] = caption.stable
        closed = caption.utterance_id if caption.final else closed
    return True
