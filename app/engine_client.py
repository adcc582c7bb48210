"""The app's side of the process boundary: starts, watches and restarts the engine, and awaits its answers.

Runs on any asyncio loop (plain or qasync). All methods and all notifications are on the loop's thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from app.engine_child import EngineChild, Target, exit_sentence
from app.errors import UserError
from app.observe import Notifier
from engine.messages import (
    PROBE_FAILED,
    Audio,
    Command,
    Configure,
    Download,
    Error,
    Event,
    Flush,
    Machine,
    MessagesLost,
    Probe,
    ProtocolError,
    Ready,
    Receiver,
    Shutdown,
    Start,
    Stop,
    Stopped,
)

log = logging.getLogger(__name__)

E = TypeVar("E", bound=Event)


class EngineError(UserError):
    """The engine cannot do what was asked, or is gone; one sentence."""


class EngineState(Enum):
    """OFF → IDLE → LOADING → READY → RUNNING → STOPPING → READY; from any of them DEAD; by `shutdown` OFF."""

    OFF = "off"
    IDLE = "idle"
    LOADING = "loading"
    READY = "ready"
    RUNNING = "running"
    STOPPING = "stopping"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class Limits:
    """Patience in seconds. `quiet_s`: a stopping engine that says nothing for so long hangs."""

    quiet_s: float = 60.0
    leave_s: float = 5.0
    terminate_s: float = 2.0
    kill_s: float = 2.0


class EngineClient:
    """One engine at a time; after its death, `start` brings a new one.

    `events`: every event that passed the protocol check. `died`: the reason, one sentence, within a second of
    the death (not after `shutdown`). `protocol_errors` counts messages that did not belong here.
    """

    def __init__(self, target: Target | None = None, limits: Limits | None = None) -> None:
        self._target = target or Target()
        self._limits = limits or Limits()
        self.events: Notifier[Event] = Notifier()
        self.states: Notifier[EngineState] = Notifier()
        self.died: Notifier[str] = Notifier()
        self.state = EngineState.OFF
        self.reason = ""
        self.protocol_errors = 0
        self.audio_dropped = 0
        self._child: EngineChild | None = None
        self._exited: asyncio.Future[None] | None = None
        self._receiver = Receiver(Event)
        self._waiting: dict[type[Event], asyncio.Future[Any]] = {}
        self._heard_s = 0.0
        self._leaving = False
        self._last_words = ""

    @property
    def alive(self) -> bool:
        """There is a process that can be talked to."""
        return self.state not in (EngineState.OFF, EngineState.DEAD)

    @property
    def pid(self) -> int | None:
        """The process (and group) id of the running engine."""
        return self._child.pid if self._child and self.alive else None

    # ------------------------------------------------------------ commands

    async def start(self) -> None:
        """Start a process. Raises `EngineError`. Does nothing when one is alive."""
        if self.alive:
            return
        loop = asyncio.get_running_loop()
        self._exited = exited = loop.create_future()
        self._receiver, self._leaving, self._last_words, self.reason = Receiver(Event), False, "", ""

        inbox: deque[Callable[[], None]] = deque()

        def drain() -> None:
            while inbox:
                inbox.popleft()()

        def on_loop(call: Callable[[], None]) -> None:
            inbox.append(call)  # a queue of our own: not every loop promises to keep the order of its callbacks
            with contextlib.suppress(RuntimeError):  # the loop was closed; nobody is left to hear it
                loop.call_soon_threadsafe(drain)

        try:
            self._child = EngineChild(
                self._target,
                lambda item: on_loop(lambda: self._received(exited, item)),
                lambda code: on_loop(lambda: self._ended(exited, code)),
            )
        except OSError as error:
            self._child = None
            raise EngineError(f"The engine cannot be started: {error.strerror or error}.") from error
        self._enter(EngineState.IDLE)

    async def probe(self) -> Machine:
        """What the engine's machine has. Raises `EngineError`. Who asks while another waits gets the same answer."""
        while (pending := self._waiting.get(Machine)) is not None and not pending.done():
            await asyncio.wait({pending})
            if not pending.cancelled():
                machine: Machine = pending.result()
                return machine
        return await self._ask(Probe(), Machine)

    async def configure(self, command: Configure) -> Ready:
        """Load models. Raises `EngineError` with the engine's own sentence; one may then configure again."""
        if self.state not in (EngineState.IDLE, EngineState.READY):
            raise EngineError(self.reason or f"The engine cannot load models now: it is {self.state.value}.")
        self._enter(EngineState.LOADING)
        return await self._ask(command, Ready)

    def start_session(self, session_id: str, live: bool = True) -> None:
        """Begin a session (`live`: see `Start`). Raises `EngineError` when the engine is not ready."""
        if self.state is not EngineState.READY:
            raise EngineError(self.reason or f"The engine cannot start a session: it is {self.state.value}.")
        self._send(Start(session_id, live))
        self._enter(EngineState.RUNNING)

    def send_audio(self, audio: Audio) -> None:
        """Hand over a block of sound.

        Dropped and counted when no session runs or the engine takes nothing.
        """
        if self.state is not EngineState.RUNNING or self._child is None or not self._child.send(audio):
            self.audio_dropped += 1
            if self.audio_dropped & (self.audio_dropped - 1) == 0:
                log.warning("%d block(s) of sound could not be given to the engine.", self.audio_dropped)

    def flush(self) -> None:
        """Close the open utterance now: its last words become final. Nothing without a session."""
        if self.state is EngineState.RUNNING:
            self._send(Flush())

    def download(self, action: str) -> None:
        """Control a running download: "pause", "resume" or "cancel". Raises `EngineError`."""
        self._send(Download(action))

    async def stop_session(self) -> Stopped:
        """End the session: returns when every caption is in. Raises `EngineError` on death or a hang."""
        if self.state is not EngineState.RUNNING:
            raise EngineError(self.reason or "There is no session to stop.")
        self._enter(EngineState.STOPPING)
        return await self._ask(Stop(), Stopped, quiet_s=self._limits.quiet_s)

    async def shutdown(self, patience_s: float | None = None) -> None:
        """End the process: ask, then insist, then kill its group. Finalises a running session first.

        `patience_s`: how long it may take to leave by itself, if not `Limits.leave_s`.
        """
        patience_s = self._limits.leave_s if patience_s is None else patience_s
        if not self.alive or self._child is None or self._exited is None:
            self._enter(EngineState.OFF)
            return
        try:
            if self.state is EngineState.RUNNING:
                await self.stop_session()
            self._leaving = True
            self._child.send(Shutdown())
            if await self._gone_within(patience_s):
                return
            log.log(logging.WARNING if patience_s else logging.INFO, "The engine is ended after %g s.", patience_s)
            self._child.terminate()
            if await self._gone_within(self._limits.terminate_s):
                return
        except EngineError as error:
            log.warning("While ending the engine: %s", error)
        finally:
            self._leaving = True
            self._child.kill()
            await self._gone_within(self._limits.kill_s)
            self._enter(EngineState.OFF)

    def kill(self, reason: str = "") -> None:
        """End the engine's process group now. `reason` replaces the sentence about the signal."""
        if self._child is not None and self.alive:
            self._last_words = reason or self._last_words
            self._child.kill()

    # ------------------------------------------------------------ answers

    def _send(self, command: Command) -> None:
        if self._child is None or not self._child.send(command):
            raise EngineError(self.reason or "The engine takes no commands any more.")

    async def _ask(self, command: Command, answer: type[E], quiet_s: float | None = None) -> E:
        """Send and wait for the answer. With `quiet_s`, an engine that says nothing for so long is killed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[E] = loop.create_future()
        self._waiting[answer] = future
        self._heard_s = loop.time()
        try:
            self._send(command)
            while not future.done():
                left_s = None if quiet_s is None else self._heard_s + quiet_s - loop.time()
                if left_s is not None and left_s <= 0:
                    self.kill(f"The engine said nothing for {quiet_s:g} s and was ended; restart it to go on.")
                    quiet_s = None
                    continue
                await asyncio.wait({future}, timeout=left_s)
            return future.result()
        finally:
            if self._waiting.get(answer) is future:
                del self._waiting[answer]
            future.cancel()  # nothing happens to one that is done; whoever else waits for it is let go

    def _received(self, child: asyncio.Future[None], item: object) -> None:
        if child is not self._exited or not self.alive:
            return  # from an engine that was given up
        self._heard_s = asyncio.get_running_loop().time()
        try:
            event = self._receiver.unwrap(item)
        except ProtocolError as error:
            self.protocol_errors += 1
            log.error("From the engine: %s", error)
            if not isinstance(error, MessagesLost) or not isinstance(error.body, Event):
                return
            event = error.body
        self._follow(event)
        self.events.emit(event)
        self._answer(event)

    def _follow(self, event: Event) -> None:
        match event:
            case Ready() if self.state is EngineState.LOADING:
                self._enter(EngineState.READY)
            case Stopped() if self.state in (EngineState.RUNNING, EngineState.STOPPING):
                self._enter(EngineState.READY)
            case Error(fatal=True):
                self._last_words = event.message
                asyncio.get_running_loop().call_later(self._limits.leave_s, self._kill_if, self._child)
            case Error() if self.state is EngineState.LOADING and event.code != PROBE_FAILED:
                self._enter(EngineState.IDLE)

    def _answer(self, event: Event) -> None:
        future = self._waiting.get(type(event))
        if future is not None and not future.done():
            future.set_result(event)
        if isinstance(event, Error) and not event.fatal:
            asked = self._waiting.get(Machine if event.code == PROBE_FAILED else Ready)
            if asked is not None and not asked.done():
                asked.set_exception(EngineError(event.message))

    def _kill_if(self, child: EngineChild | None) -> None:
        if child is not None and child is self._child and self.alive:
            child.kill()

    def _ended(self, child: asyncio.Future[None], code: int) -> None:
        if not child.done():
            child.set_result(None)
        if child is not self._exited or not self.alive:
            return
        self.reason = self._last_words or exit_sentence(code)
        log.log(logging.INFO if self._leaving else logging.ERROR, "Engine exit code %d: %s", code, self.reason)
        self._enter(EngineState.OFF if self._leaving else EngineState.DEAD)
        for future in tuple(self._waiting.values()):
            if not future.done():
                future.set_exception(EngineError(self.reason))
        if not self._leaving:
            self.died.emit(self.reason)

    async def _gone_within(self, seconds: float) -> bool:
        if self._exited is None:
            return True
        await asyncio.wait({self._exited}, timeout=seconds)
        return self._exited.done()

    def _enter(self, state: EngineState) -> None:
        if state is not self.state:
            self.state = state
            self.states.emit(state)
