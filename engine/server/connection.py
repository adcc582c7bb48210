"""One connection: frames in, the newest update to the translator, answers out.

The reader takes frames and fills the mailbox; the worker empties it. An update that needs no model is answered at once
on the loop; one that needs it waits for a slot, and what is taken then is the newest. A running draft of a partial is
cancelled when another source waits, but never twice in a row, so that a fast client still sees results.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from engine.mt.contract import TranslationError
from engine.scheduler import Mailbox, Update
from engine.server.metrics import Metrics
from engine.server.protocol import BAD_PROTOCOL, PROCESSING_FAILED, Answer, Init, ProtocolFault, parse
from engine.server.protocol import Update as WireUpdate
from engine.server.reception import Reception
from engine.server.slots import Slots
from engine.server.translation import Unfinished, WireTranslation

logger = logging.getLogger("surtitle.server")

MAX_WAITING_FINALS = 64  # beyond, the client is not read until one has been answered
MAX_BAD_FRAMES = 64
UPDATES_PER_S = 200

Outcome = Answer | Unfinished | ProtocolFault


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: for the first frame of a connection, and for a client to take what it is sent."""

    init_s: float = 10.0
    send_s: float = 10.0


class Connection:
    """A connection whose `init` was good. `run` returns when the client has left or `finish` has drained it."""

    def __init__(
        self,
        socket: ServerConnection,
        translation: WireTranslation,
        slots: Slots,
        drafting: Executor,
        metrics: Metrics,
        timeouts: Timeouts,
    ) -> None:
        self._socket = socket
        self._translation = translation
        self._slots = slots
        self._drafting = drafting
        self._metrics = metrics
        self._timeouts = timeouts
        self._reception = Reception()
        self._mailbox = Mailbox()
        self._mail = asyncio.Event()
        self._answered = asyncio.Event()
        self._unfinished: Update | None = None
        self._may_cancel = True
        self._released = 0
        self._reader: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Serve until the end of the connection."""
        worker = asyncio.create_task(self._work())
        self._reader = asyncio.create_task(self._read())
        try:
            await asyncio.wait({worker, self._reader}, return_when=asyncio.FIRST_COMPLETED)
            if self._reader.done() and not self._reader.cancelled():
                self.abandon()  # nobody is there to answer
        finally:
            self._reader.cancel()
            self._mailbox.close()
            self._mail.set()
            await worker
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader

    def finish(self) -> None:
        """Take no more updates; `run` returns when those at hand are answered."""
        if self._reader is not None:
            self._reader.cancel()

    def abandon(self) -> None:
        """Drop what waits and end what runs."""
        self._translation.abandon()
        while self._mailbox.take(0) is not None:
            pass
        self._unfinished = None
        self.finish()
        self._mail.set()

    # ------------------------------------------------------------ reader

    async def _read(self) -> None:
        """Frames into the mailbox, at most `UPDATES_PER_S`."""
        bad, pace = 0, Pace(UPDATES_PER_S)
        with contextlib.suppress(ConnectionClosed):
            async for frame in self._socket:
                arrived = time.monotonic()
                await pace.wait()
                try:
                    self._take(frame, arrived)
                except ProtocolFault as fault:
                    bad += 1
                    await self._refuse(fault)
                    if bad >= MAX_BAD_FRAMES:
                        await goodbye(self._socket, CloseCode.POLICY_VIOLATION, "too many bad frames")
                while self._mailbox.finals >= MAX_WAITING_FINALS:
                    self._answered.clear()
                    await self._answered.wait()

    def _take(self, frame: str | bytes, arrived: float) -> None:
        message = parse(frame)
        if not isinstance(message, WireUpdate):
            raise ProtocolFault(BAD_PROTOCOL, "This connection has had its init already.")
        self._metrics.updates.labels("final" if message.is_final else "partial").inc()
        utterance = self._reception.take(message)
        if utterance is None:
            self._metrics.superseded.labels("stale").inc()
            return
        before = self._mailbox.superseded
        self._mailbox.put(Update(utterance, message.clock_ms / 1000, arrived, message.seq))
        self._metrics.superseded.labels("waiting").inc(self._mailbox.superseded - before)
        self._mail.set()

    async def _refuse(self, fault: ProtocolFault) -> None:
        self._metrics.errors.labels(fault.code).inc()
        await self._send(fault.frame())

    # ------------------------------------------------------------ worker

    async def _work(self) -> None:
        while True:
            self._mail.clear()
            update = self._next()
            if update is None:
                if self._mailbox.drained:
                    return
                await self._mail.wait()
            elif self._translation.needs_engine(update):
                await self._with_slot()
            else:
                update = self._pop()
                await self._deliver(update, await self._step(update, self._inline))

    def _next(self) -> Update | None:
        return self._unfinished or self._mailbox.peek()

    def _pop(self) -> Update:
        update = self._unfinished or self._mailbox.take(0)
        assert update is not None
        self._unfinished = None
        self._answered.set()
        return update

    async def _with_slot(self) -> None:
        """Wait for a slot and draft for the newest update; give up waiting when that one needs no draft any more."""
        ticket = self._slots.ask()
        try:
            while not ticket.done():
                self._mail.clear()
                update = self._next()
                if update is None or not self._translation.needs_engine(update):
                    return
                mail = asyncio.create_task(self._mail.wait())
                either: set[asyncio.Future[Any]] = {ticket, mail}
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                mail.cancel()
            update = self._next()
            if update is None or not self._translation.needs_engine(update):
                return
            update = self._pop()
            outcome = await self._step(update, self._draft)
        finally:
            self._slots.withdraw(ticket)
        await self._deliver(update, outcome)  # without the slot: a slow client keeps nobody waiting

    async def _step(self, update: Update, how: Callable[[Update], Awaitable[Outcome]]) -> Outcome:
        """One step of an update. Whatever goes wrong drops that update and is said; the session goes on."""
        before = self._translation.session.released_tokens
        try:
            outcome = await how(update)
        except TranslationError as error:
            return ProtocolFault(PROCESSING_FAILED, str(error), seq=update.tag)
        except Exception:
            # the contract: any single bad update is an error frame
            logger.exception("an update could not be translated")
            text = "The update could not be translated; the server's log has the details."
            return ProtocolFault(PROCESSING_FAILED, text, seq=update.tag)
        self._released += self._translation.session.released_tokens - before
        self._may_cancel = outcome is not Unfinished.SUPERSEDED
        self._unfinished = update if outcome is Unfinished.MORE else None
        if isinstance(outcome, Answer) and outcome.forced_final:
            self._reception.closed(outcome.utterance_id)
        return outcome

    async def _deliver(self, update: Update, outcome: Outcome) -> None:
        if isinstance(outcome, ProtocolFault):
            await self._refuse(outcome)
        elif isinstance(outcome, Answer):
            held = self._translation.session.held_tokens if outcome.buffer_text else 0
            self._metrics.answered(outcome, time.monotonic() - update.queued_at, self._released, held)
            self._released = 0
            await self._send(outcome.frame())
        elif outcome is Unfinished.SUPERSEDED:
            self._metrics.superseded.labels("drafting").inc()

    async def _inline(self, update: Update) -> Outcome:
        return self._translation.advance(update, lambda: False)

    async def _draft(self, update: Update) -> Outcome:
        words = _texts(update)
        may_cancel = self._may_cancel

        def overtaken() -> bool:
            newer = self._mailbox.peek()
            return newer is not None and (may_cancel or newer.utterance.final) and _texts(newer) != words

        loop = asyncio.get_running_loop()
        self._metrics.drafts_running.inc()
        calls = self._translation.session.engine_calls
        try:
            return await loop.run_in_executor(self._drafting, self._translation.advance, update, overtaken)
        finally:
            self._metrics.drafts_running.dec()
            self._metrics.drafts.inc(self._translation.session.engine_calls - calls)

    async def _send(self, frame: str) -> None:
        """Send a frame; a client that does not take it is cut off."""
        try:
            async with asyncio.timeout(self._timeouts.send_s):
                await self._socket.send(frame)
        except ConnectionClosed:
            pass
        except TimeoutError:
            logger.warning("a client does not read: its connection is cut")
            self._socket.transport.abort()


async def receive_init(socket: ServerConnection, timeout_s: float) -> Init:
    """The first frame. Raises `ProtocolFault`, or `ConnectionClosed` when the client left."""
    try:
        frame = await asyncio.wait_for(socket.recv(), timeout_s)
    except TimeoutError:
        raise ProtocolFault(BAD_PROTOCOL, f"No init came within {timeout_s:g} s.") from None
    message = parse(frame)
    if not isinstance(message, Init):
        raise ProtocolFault(BAD_PROTOCOL, "The first frame must be an init.")
    return message


async def goodbye(socket: ServerConnection, code: CloseCode, reason: str = "") -> None:
    """Close a connection. What is on its way is read and dropped: unread, it would keep the client's answer back."""
    closing = asyncio.create_task(socket.close(code, reason))
    with contextlib.suppress(ConnectionClosed):
        async for _ in socket:
            pass
    await closing


class Pace:
    """Lets through so many a second on average, with a burst of one second's worth."""

    def __init__(self, per_s: float) -> None:
        self._interval_s = 1 / per_s
        self._burst_s = 1.0
        self._due = 0.0

    async def wait(self) -> None:
        now = time.monotonic()
        self._due = max(self._due, now - self._burst_s) + self._interval_s
        # also without a delay the loop gets its turn: a client that floods must not starve the others
        await asyncio.sleep(max(0.0, self._due - now))


def _texts(update: Update) -> list[str]:
    return [word.text for word in (*update.utterance.committed, *update.utterance.tail)]
