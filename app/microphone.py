"""The microphone as a source, watched while it runs: when it is lost, it is looked for and another takes its place.

Whatever happens, the session goes on until it is stopped; sound that nobody recorded is a gap on its clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field

from app.capture_clock import CaptureClock
from app.capture_stream import CaptureStream, rescan_devices
from app.clock import now_s
from app.devices import InputDevice, find_input, fingerprint, list_inputs, match_input, tidy
from app.source import Feed, SourceError, SourceReport
from app.threads import in_thread

log = logging.getLogger(__name__)

CLOSE_S = 3.0
LOST_CLOSE_S = 0.3  # a lost device may never close; the person should hear of it now
LIST_S = 5.0
WAKE_S = 0.1
DELAYS_S = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # before each next try of a device that failed
STEADY_S = 10.0  # a device that ran for so long starts again with the first of them
RETURN_S = 5.0  # with another device in use: how often to look whether the wanted one is back
PROVE_S = 1.0  # it must deliver within so long to be taken
OVERFLOW_SHOWN_S = 10.0


@dataclass(slots=True)
class _Patience:
    """When a device that failed may be tried again."""

    failures: int = 0
    until_s: float = 0.0

    def failed(self, ran_s: float) -> None:
        self.failures = 1 if ran_s >= STEADY_S else self.failures + 1
        self.until_s = now_s() + DELAYS_S[min(self.failures, len(DELAYS_S)) - 1]


@dataclass(slots=True)
class _Recovery:
    """What is known of the devices while a session runs."""

    patience: dict[str, _Patience] = field(default_factory=dict)

    def of(self, device: InputDevice) -> _Patience:
        return self.patience.setdefault(device.key, _Patience())

    def ready(self, device: InputDevice) -> bool:
        return self.of(device).until_s <= now_s()


class MicrophoneSource:
    """Records until it is stopped. `device`: a key or part of a name, None for the default microphone. `required`: it
    is an error when that one is not there at the start; otherwise another is taken and said.
    """

    live = True

    def __init__(self, device: str | None = None, *, required: bool = True) -> None:
        self._wanted, self._required = device, required
        self._name = device or "microphone"
        self._arrived = asyncio.Event()
        self._begun: CaptureClock | None = None
        self._why = ""
        self._known = _Recovery()
        self._report = SourceReport(self._name)
        self._overflows, self._overflow_s = 0, -OVERFLOW_SHOWN_S
        self._cards = self._default = ""

    @property
    def name(self) -> str:
        return self._name

    @property
    def overflows(self) -> int:
        """Blocks before which the sound system lost audio."""
        return self._overflows

    def check(self) -> None:
        """Raises `SourceError` when there is no such microphone, none at all, or no PortAudio."""
        if self._required or self._wanted is None:
            self._name = find_input(self._wanted).label
        else:
            self._name = self._choices(self._list())[0].label

    async def run(self, feed: Feed) -> None:
        """Record into the feed. Raises `SourceError` when no device can be opened at the start."""
        stream = await self._first(feed)
        while stream is not None:
            loss = await self._record(feed, stream)
            if feed.stopped:
                return
            if loss:
                self._why = loss
                self._say(feed, f"{loss}: it is looked for.", lost=True)
            stream = await self._next(feed)

    # ------------------------------------------------------------ recording

    async def _record(self, feed: Feed, stream: CaptureStream) -> str:
        """Until the stop, or the loss, of which it returns the beginning of a sentence; "" also when the device in use
        was given up in order to look for the wanted one.
        """
        began_s, checked_s, limit_s = now_s(), now_s(), LOST_CLOSE_S
        try:
            while not feed.stopped:
                await self._wait()
                self._forward(feed, stream)
                if loss := stream.loss:
                    self._known.of(stream.device).failed(now_s() - began_s)
                    return f"The microphone '{stream.device.label}' {loss}"
                if self._is_wanted(stream.device) or now_s() - checked_s <= RETURN_S:
                    continue
                checked_s = now_s()
                if self._cards != (cards := fingerprint()):
                    self._cards = cards
                    self._known.patience.clear()
                    return ""  # only a rescan shows a new card, and no stream may be open meanwhile
                if (better := await self._returned(feed, stream)) is not None:
                    old, stream, began_s = stream, better, now_s()
                    await old.close(CLOSE_S)
                    self._settle(feed, stream.device)
            limit_s = CLOSE_S
        finally:
            await stream.close(limit_s)
            self._forward(feed, stream)
        return ""

    def _forward(self, feed: Feed, stream: CaptureStream) -> None:
        rate = stream.device.sample_rate
        for samples, start_s in stream.take():
            if stream.shift_s is None:  # the device before it may have been ahead of real time
                stream.shift_s = max(0.0, feed.sent_s - start_s)
            feed.send(samples, rate, start_s + stream.shift_s)
        if more := stream.take_overflows():
            before, self._overflows, self._overflow_s = self._busy, self._overflows + more, feed.sent_s
            self._say(feed, "" if self._report.trouble == before else self._report.trouble, lost=self._report.lost)
        elif self._report.trouble == self._busy and feed.sent_s > self._overflow_s + OVERFLOW_SHOWN_S:
            self._say(feed, "")

    async def _wait(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), WAKE_S)
        self._arrived.clear()

    # ------------------------------------------------------------ choosing

    def _list(self) -> list[InputDevice]:
        return list_inputs(with_server=self._wanted is not None)

    async def _look(self) -> list[InputDevice]:
        """The devices to try, best first. Raises `SourceError` or TimeoutError."""
        return await in_thread(lambda: self._choices(self._list()), LIST_S)

    def _choices(self, devices: list[InputDevice]) -> list[InputDevice]:
        """The wanted one, the default one, the others; never what the machine plays, unless that is wanted."""
        wanted = match_input(devices, self._wanted) if self._wanted else None
        first = [wanted] if wanted else []
        if devices and not devices[0].monitor:
            first.append(devices[0])
        rest = [device for device in tidy(devices) if not device.monitor]
        choices = list({device.key: device for device in (*first, *rest)}.values())
        if not choices:
            raise SourceError("There is no microphone; connect one, or give an audio file.")
        return choices

    def _is_wanted(self, device: InputDevice) -> bool:
        if self._wanted is None:
            return device.key == self._default
        return match_input([device], self._wanted) is not None

    async def _first(self, feed: Feed) -> CaptureStream | None:
        self._cards = fingerprint()
        if self._required:
            choices = [find_input(self._wanted)]
        else:
            choices = await self._look()
        self._default = choices[0].key
        problem: SourceError | None = None
        for device in choices:
            try:
                stream = await self._open(device)
            except SourceError as error:
                problem = problem or error
                self._known.of(device).failed(0.0)
                continue
            missing = f"The microphone '{self._wanted}' is not connected"
            self._why = str(problem).rstrip(".") if problem else missing
            self._settle(feed, device)
            return stream
        raise problem or SourceError("There is no microphone.")

    async def _next(self, feed: Feed) -> CaptureStream | None:
        """Another stream, however long that takes; None when the session is stopped meanwhile."""
        while not feed.stopped:
            try:
                self._cards = fingerprint()
                await rescan_devices()
                for device in await self._look():
                    if not self._known.ready(device):
                        continue
                    try:
                        stream = await self._open(device)
                    except SourceError as error:
                        log.info("%s", error)
                        self._known.of(device).failed(0.0)
                        continue
                    self._settle(feed, device)
                    return stream
            except (SourceError, TimeoutError) as error:
                log.info("Looking for a microphone: %s", error)
            self._say(feed, f"{self._why}: connect it again, or choose another; the session goes on.", lost=True)
            await feed.pause(DELAYS_S[2])
        return None

    async def _returned(self, feed: Feed, current: CaptureStream) -> CaptureStream | None:
        """The wanted device, when it delivers again beside the one in use; None otherwise."""
        try:
            wanted = (await self._look())[0]
            if not self._is_wanted(wanted) or not self._known.ready(wanted):
                return None
            stream = await self._open(wanted)
        except (SourceError, TimeoutError) as error:
            log.info("%s", error)
            return None
        until_s = now_s() + PROVE_S
        while not (stream.delivered or stream.loss or feed.stopped) and now_s() < until_s:
            await self._wait()
            self._forward(feed, current)
        if stream.delivered:
            for _ in stream.take():
                pass  # the device in use has recorded this, too
            return stream
        self._known.of(wanted).failed(0.0)
        await stream.close(LOST_CLOSE_S)
        return None

    async def _open(self, device: InputDevice) -> CaptureStream:
        stream = CaptureStream(device, self._clock(device), self._arrived)
        await stream.open()
        return stream

    def _clock(self, device: InputDevice) -> CaptureClock:
        """The first device that delivers begins the session; those after it find their place on its clock."""
        if self._begun is None or self._begun.began_s is None:
            self._begun = CaptureClock(device.sample_rate)
            return self._begun
        return CaptureClock(device.sample_rate, self._begun.began_s)

    # ------------------------------------------------------------ saying

    def _settle(self, feed: Feed, device: InputDevice) -> None:
        """This device is used from now on."""
        self._name = device.label
        if self._is_wanted(device):
            self._why = ""
        self._say(feed, f"{self._why}: '{device.label}' is used until it is back." if self._why else "")

    @property
    def _busy(self) -> str:
        times = "once" if self._overflows == 1 else f"{self._overflows} times"
        return f"Sound was lost {times}, because the machine is busy; close other programs."

    def _say(self, feed: Feed, trouble: str, *, lost: bool = False) -> None:
        if not trouble and self._overflows and feed.sent_s <= self._overflow_s + OVERFLOW_SHOWN_S:
            trouble = self._busy
        report = SourceReport(self._name, trouble, lost, self._overflows)
        if report != self._report:
            self._report = report
            feed.reports.emit(report)
