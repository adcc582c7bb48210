"""A child process that plays an engine: no models, the same messages. `Configure.context` tells it what to do.

The context is a JSON object. Keys: `load` ("fail", "die", "fatal", "hang"), `load_s`, `text` (target words),
`words_s` (audio per released word), `final_every` (words per utterance), `held` (words), `lag_s`, `grandchild` (true),
`on_stop` ("hang"), `on_shutdown` ("hang"), `refuse` (true: no session begins), `probe` ("fail"), and by word number
`violate_at`, `hole_at`, `error_at`, `die_at`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing.queues import Queue
from typing import Any

from engine.messages import (
    PROBE_FAILED,
    Activity,
    Audio,
    Caption,
    Command,
    Configure,
    Envelope,
    Error,
    Event,
    Flush,
    Health,
    Loading,
    Machine,
    Numberer,
    Probe,
    Ready,
    Receiver,
    Shutdown,
    Start,
    Stop,
    Stopped,
)

TEXT = "Guten Morgen und herzlich willkommen zu diesem Vortrag über das Wetter von morgen"
SOURCE = "Good morning and a warm welcome to this talk about the weather of tomorrow"


def run(commands: Queue[Any], events: Queue[Any], parent_pid: int) -> None:
    """Entry point, as `engine.process.run_engine`."""
    os.setpgid(0, 0)
    FakeEngine(events).run(commands)
    events.close()
    events.join_thread()


class FakeEngine:
    """Answers every command as the real engine would, with words made up from the amount of audio."""

    def __init__(self, events: Queue[Any]) -> None:
        self._events, self._numberer = events, Numberer()
        self._do: dict[str, Any] = {}
        self._session, self._audio_s, self._words, self._began_s = "", 0.0, 0, 0.0

    def run(self, commands: Queue[Any]) -> None:
        receiver = Receiver(Command)
        while True:
            command = receiver.unwrap(commands.get())
            if isinstance(command, Shutdown):
                if self._do.get("on_shutdown") == "hang":
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    time.sleep(3600)
                return
            self._take(command)

    def _take(self, command: Command | Event) -> None:
        match command:
            case Probe() if self._do.get("probe") == "fail":
                self._emit(Error(PROBE_FAILED, "The machine cannot be looked at."))
            case Probe():
                self._emit(Machine("3.11", 2, 8.0))
            case Configure():
                self._configure(command)
            case Start(session_id) if self._do.get("refuse"):
                self._emit(Error("TranslationError", "The server does not answer."))
                self._emit(Stopped(session_id, 0.0, 0.0))
            case Start(session_id):
                self._session, self._audio_s, self._words = session_id, 0.0, 0
                self._began_s = time.monotonic()
            case Audio():
                self._listen(command)
            case Flush() if self._words and (said := self._position()):
                self._caption(final=True)
                self._words += self._do.get("final_every", 6) - said
            case Stop():
                if self._do.get("on_stop") == "hang":
                    return
                if self._words and self._position():
                    self._caption(final=True)
                self._emit(Stopped(self._session, self._audio_s, time.monotonic() - self._began_s))

    def _configure(self, command: Configure) -> None:
        self._do = json.loads(command.context or "{}")
        info: dict[str, Any] = {"model": "fake", "pid": os.getpid()}
        for step in range(3):
            self._emit(Loading("models", step / 3, f"part {step + 1} of 3"))
            time.sleep(self._do.get("load_s", 0.0) / 3)
        match self._do.get("load"):
            case "fail":
                return self._emit(Error("weights", "The weights are damaged; download them again."))
            case "die":
                os._exit(3)
            case "fatal":
                self._emit(Error("memory", "There is not enough memory for the models.", fatal=True))
                self._events.close()
                self._events.join_thread()
                os._exit(1)
            case "hang":
                return None
        if self._do.get("grandchild"):
            info["grandchild"] = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid
        return self._emit(Ready(command.preset, command.source_lang, command.target_lang, info))

    def _listen(self, audio: Audio) -> None:
        self._audio_s = audio.start_s + len(audio.pcm) / (4 * audio.channels * audio.sample_rate)
        while self._audio_s >= (self._words + 1) * self._do.get("words_s", 0.3):
            self._words += 1
            self._word()
        lag_s = self._do.get("lag_s", 0.8)
        self._emit(Activity(self._audio_s, self._audio_s, speech=True, lag_s=lag_s))

    def _word(self) -> None:
        if self._words == self._do.get("hole_at"):
            next(self._numberer._seq)
        if self._words == self._do.get("error_at"):
            self._emit(Error("processing_failed", "One update failed and was left out."))
            self._emit(Health("capture", "degraded", "Attention rows are missing; text is released more slowly."))
        self._caption(final=self._position() == 0)
        if self._words == self._do.get("violate_at"):
            self._emit(self._state(final=False, stable="Ganz anders"))
        if self._words == self._do.get("die_at"):
            self._events.close()
            self._events.join_thread()
            os.kill(os.getpid(), signal.SIGKILL)

    def _position(self) -> int:
        """Words of the open utterance; 0 right after its last."""
        return self._words % self._do.get("final_every", 6)

    def _caption(self, final: bool) -> None:
        self._emit(self._state(final))

    def _state(self, final: bool, stable: str | None = None) -> Caption:
        every, text = self._do.get("final_every", 6), self._do.get("text") or TEXT.split()
        source = SOURCE.split()
        utterance = (self._words - 1) // every
        first = utterance * every
        count = self._words - first
        say = [text[(first + i) % len(text)] for i in range(every + 8)]
        heard = [source[(first + i) % len(source)] for i in range(every + 8)]
        held = 0 if final else min(self._do.get("held", 2), every - count)
        return Caption(
            utterance_id=utterance,
            stable=" ".join(say[:count]) if stable is None else stable,
            held="".join(f" {word}" for word in say[count : count + held]),
            source_stable=" ".join(heard[:count]),
            source_tail="" if final else " ".join(heard[count : count + held]),
            covered_source_units=count,
            final=final,
            reason="stop" if final else "alignatt:source_frontier",
            start_s=first * self._do.get("words_s", 0.3),
            end_s=self._audio_s,
            audio_s=self._audio_s,
            emitted_s=self._audio_s,
        )

    def _emit(self, event: Event) -> None:
        envelope: Envelope = self._numberer.wrap(event)
        self._events.put(envelope)
