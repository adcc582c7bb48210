"""One speaker: audio → words → draft → decision → caption events.

Two threads of its own: the listener turns audio into utterances, the translator turns the newest utterance state into
captions. They meet in a mailbox, so that a draft never blocks audio and a newer source overtakes an older one.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from engine.asr.contract import Recogniser, Transcript, Utterance, Word
from engine.audio import GateEvent, SessionAudio, SpeechChunk, SpeechEnd, SpeechGate, SpeechPause, joined
from engine.messages import Activity, Audio, Caption, Error, Event, Flush, Stop, Stopped
from engine.mt.contract import CaptionState, TranslationError, TranslationSession
from engine.scheduler import Mailbox, Update
from engine.spans import span

logger = logging.getLogger("surtitle.session")

Emit = Callable[[Event], None]
Command = Audio | Flush | Stop
ACTIVITY_EVERY_S = 0.25


class AppendOnly:
    """Guards the promise where captions are built: the stable text of an utterance only grows, and ends with its final.

    Utterances are closed in the order of their ids.
    """

    def __init__(self) -> None:
        self._stable: dict[int, str] = {}
        self._closed_through = -1
        self.violations = 0

    def last(self, utterance_id: int) -> str:
        """The stable text shown so far."""
        return self._stable.get(utterance_id, "")

    def accept(self, utterance_id: int, stable: str, final: bool) -> bool:
        """Whether `stable` continues what was shown; a violation is counted."""
        before = self._stable.get(utterance_id, "")
        if not stable.startswith(before) or utterance_id <= self._closed_through:
            self.violations += 1
            logger.error("utterance %d: stable text %r would replace %r", utterance_id, stable, before)
            return False
        if final:
            self._stable.pop(utterance_id, None)
            self._closed_through = utterance_id
        else:
            self._stable[utterance_id] = stable
        return True


class SessionTimes:
    """The session clock as wall time sees it, and how far stable text is behind the voice.

    `now_s` is anchored on the earliest moment any audio could have arrived, so at real pace it is the time since the
    first sample; a source that runs ahead of real time pushes it along.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started = time.monotonic()
        self._anchor: float | None = None
        self.audio_s = 0.0
        self.processed_s = 0.0
        self.spoken_s = 0.0
        self.stable_s = 0.0
        self.speech = False

    def received(self, end_s: float) -> None:
        """Audio up to `end_s` has arrived just now. A time that is none is left to who converts the audio."""
        if not math.isfinite(end_s):
            return
        with self._lock:
            anchor = time.monotonic() - end_s
            self._anchor = anchor if self._anchor is None else min(self._anchor, anchor)
            self.audio_s = max(self.audio_s, end_s)

    def now_s(self) -> float:
        """The session time of this moment."""
        with self._lock:
            return 0.0 if self._anchor is None else max(self.audio_s, time.monotonic() - self._anchor)

    def wall_s(self) -> float:
        """Wall time since the session was made."""
        return time.monotonic() - self._started

    def lag_s(self) -> float:
        """Seconds between the newest speech and the newest source word that stable text covers."""
        newest = self.audio_s if self.speech else self.spoken_s
        return max(0.0, newest - self.stable_s)


class SpeakerSession:
    """A running session. `push` takes commands and returns at once; the last event is `Stopped`."""

    def __init__(
        self,
        session_id: str,
        recogniser: Recogniser,
        translation: TranslationSession,
        gate: SpeechGate,
        emit: Emit,
        *,
        separator: str = " ",
        live: bool = True,
    ) -> None:
        self._session_id = session_id
        self._recogniser = recogniser
        self._translation = translation
        self._gate = gate
        self._emit = emit
        self._separator = separator
        self._live = live
        recogniser.coalesce = live
        self._audio = SessionAudio()
        self._commands: queue.Queue[Command] = queue.Queue()
        self._mailbox = Mailbox()
        self._times = SessionTimes()
        self._guard = AppendOnly()
        self._activity_due_s = 0.0
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._listen, name="listener", daemon=True),
            threading.Thread(target=self._translate, name="translator", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def push(self, command: Command) -> None:
        """Take audio, a flush, or the stop that ends the session."""
        if isinstance(command, Audio):
            frames = len(command.pcm) // (4 * max(1, command.channels))
            self._times.received(command.start_s + frames / max(1, command.sample_rate))
        self._commands.put(command)

    @property
    def running(self) -> bool:
        """Whether `Stopped` is still to come: who has heard it may begin the next session at once."""
        return not self._ended.is_set()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the end that a `Stop` brings about."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    # ------------------------------------------------------------ listener

    def _listen(self) -> None:
        stopping = False
        while not stopping:
            batch = [self._commands.get()]
            while not self._commands.empty():
                batch.append(self._commands.get_nowait())
            stopping = any(isinstance(command, Stop) for command in batch)
            self._hear(batch)
        self._close_utterance()
        self._mailbox.close()

    @contextmanager
    def _surviving(self, code: str, sentence: str) -> Iterator[None]:
        """Whatever goes wrong is one error event, and the session goes on without what failed."""
        try:
            yield
        except Exception:
            logger.exception(sentence)
            self._emit(Error(code, sentence))

    def _hear(self, batch: list[Command]) -> None:
        """Run a batch of commands; contiguous speech in it reaches the recogniser in one push."""
        pending: list[GateEvent] = []
        for command in batch:
            with self._surviving("audio_failed", "A moment of audio could not be processed and was left out."):
                pending += self._gated(command)
            self._times.speech = self._gate.speech
        self._recognise(pending)
        self._times.processed_s = self._audio.clock_s
        self._tell_activity()

    def _gated(self, command: Command) -> list[GateEvent]:
        """What a command lets through to the recogniser."""
        events: list[GateEvent] = []
        if isinstance(command, Audio):
            blocks = self._audio.convert(command.pcm, command.sample_rate, command.channels, command.start_s)
            with span("voice_activity", self._audio.clock_s):
                for block in blocks:
                    events += self._gate.push(block.samples, block.start_s)
        elif isinstance(command, Flush):
            events += [*self._gate.finish(), SpeechEnd(self._audio.clock_s)]
        return events

    def _recognise(self, events: list[GateEvent]) -> None:
        for event in joined(events) if self._live else events:
            with self._surviving("asr_failed", "A moment of speech could not be recognised and was left out."):
                self._submit(self._heard(event))

    def _heard(self, event: GateEvent) -> Transcript:
        if isinstance(event, SpeechChunk):
            self._times.spoken_s = event.end_s
            return self._recogniser.push(event.samples, event.start_s)
        return self._recogniser.pause() if isinstance(event, SpeechPause) else self._recogniser.finish()

    def _close_utterance(self) -> None:
        """The audio has ended: what resampler, gate and recogniser still hold comes out."""
        rest: list[GateEvent] = []
        with self._surviving("audio_failed", "The last moment of audio could not be processed and was left out."):
            for block in self._audio.flush():
                rest += self._gate.push(block.samples, block.start_s)
            rest += self._gate.finish()
        # Once more: an utterance whose last decode failed is closed with what was known before.
        self._recognise([*rest, SpeechEnd(self._audio.clock_s)])
        self._times.processed_s = self._audio.clock_s
        self._times.speech = False
        if self._audio.repaired or self._audio.late_s:
            repaired, late_s = self._audio.repaired, self._audio.late_s
            logger.warning("%d samples were no sound, and %.3f s of audio came twice.", repaired, late_s)

    def _submit(self, transcript: Transcript) -> None:
        for utterance in transcript.utterances:
            self._mailbox.put(Update(utterance, transcript.clock_s, time.monotonic()))
            if not self._live:
                self._mailbox.wait_idle()

    def _tell_activity(self) -> None:
        waited_for = not self._live and self._commands.empty()  # a file that is fed by what was processed
        if self._times.now_s() < self._activity_due_s and not waited_for:
            return
        self._activity_due_s = self._times.now_s() + ACTIVITY_EVERY_S
        times = self._times
        # After speech every utterance is closed: once the finals are told, nothing is behind, heard words or not.
        lag_s = times.lag_s() if times.speech or not self._mailbox.idle else 0.0
        self._emit(Activity(times.audio_s, times.processed_s, times.speech, round(lag_s, 2)))

    # ------------------------------------------------------------ translator

    def _translate(self) -> None:
        while (update := self._mailbox.take()) is not None:
            with self._surviving("translation_failed", "A piece of the translation failed; the log has the details."):
                self._carry_through(update)
        with self._surviving("translation_failed", "The translation could not be closed; the log has the details."):
            self._translation.close()
        self._ended.set()
        times = self._times
        self._emit(Activity(times.audio_s, times.processed_s, False, 0.0))
        self._emit(Stopped(self._session_id, times.audio_s, round(times.wall_s(), 3)))

    def _carry_through(self, update: Update) -> None:
        taken = time.monotonic()
        with span("translation", update.clock_s):
            state = self._update(update)
        if state is not None:
            wait_ms = round(1000 * (taken - update.queued_at), 3)
            self._tell_caption(update, state, {"wait_ms": wait_ms, **state.stages})

    def _update(self, update: Update) -> CaptionState | None:
        utterance = update.utterance
        try:
            return self._translation.update(
                utterance.utterance_id,
                utterance.committed,
                utterance.tail,
                update.clock_s,
                utterance.final,
                lambda: self._mailbox.makes_way(utterance),
            )
        except TranslationError as error:
            self._emit(Error("translation_failed", str(error)))
        except Exception:
            # the contract: any single bad update is an error event, and the session goes on
            logger.exception("utterance %d could not be translated", utterance.utterance_id)
            self._emit(Error("translation_failed", "A piece of the translation failed; the log has the details."))
        return self._closing(utterance) if utterance.final else None

    def _closing(self, utterance: Utterance) -> CaptionState:
        """A final that failed closes its utterance with what was stable before."""
        stable = self._guard.last(utterance.utterance_id)
        return CaptionState(utterance.utterance_id, stable, "", None, True, "error", engine_call=False)

    def _tell_caption(self, update: Update, state: CaptionState, stages: dict[str, float]) -> None:
        utterance = update.utterance
        if not self._guard.accept(state.utterance_id, state.stable, state.final):
            self._emit(Error("append_only", "A translation that would have changed stable text was dropped."))
            state = self._closing(utterance)
            if not utterance.final or not self._guard.accept(state.utterance_id, state.stable, final=True):
                return
        words = (*utterance.committed, *utterance.tail)
        covered_s = self._note_stable(words, state)
        self._emit(
            Caption(
                utterance_id=state.utterance_id,
                stable=state.stable,
                held=state.held,
                source_stable=self._text(utterance.committed),
                source_tail=self._text(utterance.tail),
                covered_source_units=state.covered_source_units,
                final=state.final,
                reason=state.reason,
                start_s=words[0].start_s if words else self._times.spoken_s,
                end_s=words[-1].end_s if words else self._times.spoken_s,
                audio_s=words[-1].end_s if words else self._times.spoken_s,
                emitted_s=round(self._times.now_s(), 3),
                stages=stages,
                tokens=state.tokens,
                covered_s=covered_s,
                clock_s=round(update.clock_s, 3),
            )
        )

    def _text(self, words: tuple[Word, ...]) -> str:
        return self._separator.join(word.text for word in words)

    def _note_stable(self, words: tuple[Word, ...], state: CaptionState) -> float | None:
        """End of the newest source word that stable text covers, None before any."""
        covered = len(words) if state.final else min(state.covered_source_units or 0, len(words))
        if not covered:
            return None
        covered_s = words[covered - 1].end_s
        self._times.stable_s = max(self._times.stable_s, covered_s)
        return covered_s
