"""Plays a recording to the engine process at real pace, as the app does, and notes what comes back and when."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from engine.benchmarks.mt_subject import BenchmarkError
from engine.benchmarks.session_engine import Rows, Told, Work, run
from engine.messages import (
    Audio,
    Caption,
    Command,
    Error,
    Event,
    Health,
    Loading,
    Numberer,
    Ready,
    Receiver,
    Stopped,
)
from engine.spans import Span

BLOCK_S = 0.1
LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class Heard:
    """A caption, with the `time.monotonic()` at which it left the session and at which it arrived here."""

    caption: Caption
    told_s: float
    received_s: float


@dataclass(slots=True)
class Record:
    """What happened so far; all moments are `time.monotonic()`.

    `sent`: for each block of audio the session time of its end and when it was sent. `running`: stages at work.
    """

    sent: list[tuple[float, float]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    captions: list[Heard] = field(default_factory=list)
    loading: list[tuple[float, Loading]] = field(default_factory=list)
    running: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ready: tuple[float, Ready] | None = None
    rows: Rows | None = None
    stopped_s: float | None = None
    _told_s: float = 0.0

    def take(self, at_s: float, event: Event) -> None:
        """Note an event."""
        match event:
            case Work(span) if span.ended_s is None:
                self.running[span.stage] = span.began_s
            case Work(span):
                self.running.pop(span.stage, None)
                self.spans.append(span)
            case Told():
                self._told_s = event.at_s
            case Caption():
                self.captions.append(Heard(event, self._told_s, at_s))
            case Rows():
                self.rows = event
            case Loading():
                self.loading.append((at_s, event))
            case Ready():
                self.ready = (at_s, event)
            case Health():
                self.notes.append(event.text)
            case Error():
                self.errors.append(event.message)
            case Stopped():
                self.stopped_s = at_s


class EngineProcess:
    """The engine in a process of its own. `began_s`: when it was started. `record` grows on a thread: who looks at more
    than one thing of it holds `changed`."""

    def __init__(self, *options: Any, on_event: Callable[[Event], None] = lambda event: None) -> None:
        """`options` go to `session_engine.run`. `on_event` is called on a thread, after the record has it."""
        context = multiprocessing.get_context("spawn")
        self._commands, self._events = context.Queue(), context.Queue()
        for one in (self._commands, self._events):
            one.cancel_join_thread()
        self._numberer, self._on_event = Numberer(), on_event
        self.record = Record()
        self.changed = threading.Condition()
        self._done = threading.Event()
        # Not a daemon: it has processes of its own.
        self._process = context.Process(target=run, args=(self._commands, self._events, os.getpid(), *options))
        self.began_s = time.monotonic()
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid
        threading.Thread(target=self._read, name="engine events", daemon=True).start()

    def send(self, command: Command) -> None:
        """Queue a command. Raises `BenchmarkError` when the engine is gone."""
        if not self.alive:
            raise BenchmarkError(f"The engine process ended with exit code {self._process.exitcode}: see its log.")
        self._commands.put(self._numberer.wrap(command))

    def wait(self, ready: Callable[[Record], bool], limit_s: float | None = None) -> bool:
        """Whether it came true in time. Raises `BenchmarkError` when the engine is gone before."""
        deadline_s = None if limit_s is None else time.monotonic() + limit_s
        with self.changed:
            while not ready(self.record):
                if not self.alive:
                    raise BenchmarkError(
                        f"The engine process ended with exit code {self._process.exitcode}: see its log."
                    )
                if deadline_s is not None and time.monotonic() > deadline_s:
                    return False
                self.changed.wait(LOOK_S if limit_s is None else min(LOOK_S, limit_s))
        return True

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

    def descendants(self) -> list[psutil.Process]:
        """Everything that the engine process has started, but for helpers of `multiprocessing` that hold nothing."""
        try:
            found = psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [one for one in found if "resource_tracker" not in command_line(one)]

    def kill(self) -> None:
        """SIGKILL to the engine process alone, as when memory runs out."""
        os.kill(self.pid, signal.SIGKILL)
        self._process.join()

    def close(self) -> None:
        """Leave nothing behind, whatever happened."""
        self._done.set()
        left = self.descendants()
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self._process.kill()
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self._process.join()

    def _read(self) -> None:
        receiver = Receiver(Event)
        while not self._done.is_set():
            try:
                item = self._events.get(timeout=LOOK_S)
            except queue.Empty:
                continue
            except Exception:  # noqa: BLE001  half a message of a process that was killed
                return
            at_s = time.monotonic()
            event: Event = receiver.unwrap(item)
            with self.changed:
                self.record.take(at_s, event)
                self.changed.notify_all()
            self._on_event(event)


def command_line(process: psutil.Process) -> str:
    """How a process was started; "" when it is gone."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@dataclass(frozen=True, slots=True)
class Recording:
    """Samples [frames, channels] and their rate."""

    samples: NDArray[np.float32]
    rate: int

    @property
    def seconds(self) -> float:
        return len(self.samples) / self.rate

    def block(self, number: int) -> bytes:
        """The block of this number, of the recording again and again."""
        size = round(BLOCK_S * self.rate)
        at = np.arange(number * size, (number + 1) * size) % len(self.samples)
        return np.ascontiguousarray(self.samples[at]).tobytes()


def read_recording(path: Path) -> Recording:
    """Raises `BenchmarkError` for what is no recording."""
    import soundfile

    try:
        samples, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (OSError, soundfile.LibsndfileError) as error:
        raise BenchmarkError(f"'{path}' cannot be read as a recording: {error}.") from error
    if len(samples) < rate:
        raise BenchmarkError(f"'{path}' is shorter than a second: give a recording with speech.")
    return Recording(np.nan_to_num(samples), rate)


def play(engine: EngineProcess, recording: Recording) -> Iterator[float]:
    """Send the recording again and again, as a microphone brings it; yields the seconds sent so far, without end.

    A block is sent when its last sample has been spoken. Raises `BenchmarkError` when the engine is gone.
    """
    channels, began_s = recording.samples.shape[1], time.monotonic()
    for number in itertools.count():
        end_s = (number + 1) * BLOCK_S
        time.sleep(max(0.0, began_s + end_s - time.monotonic()))
        engine.record.sent.append((end_s, time.monotonic()))
        engine.send(Audio(recording.block(number), recording.rate, channels, number * BLOCK_S))
        yield end_s
