"""The process boundary: every command and every event, and who may send it when.

Commands go from the app to the engine, events from the engine to the app, each wrapped in an `Envelope` that carries
the protocol version and a sequence number of its own direction (0, 1, 2, …). Everything here is plain and picklable;
PCM bytes are the only bulk data. Times are seconds on the session clock (0.0 = first sample of the session).

Order: CONFIGURE → LOADING* → READY → START → (AUDIO | FLUSH)* → STOP → STOPPED, then START again or SHUTDOWN.
PROBE is answered at any time, by MACHINE or an `ERROR` with the code `PROBE_FAILED`. A START that fails is answered by
`ERROR`, then STOPPED. An `ERROR` that is not fatal leaves the engine in the state it was in.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Generic, TypeVar

PROTOCOL_VERSION = 1
PROBE_FAILED = "probe_failed"


class ProtocolError(Exception):
    """An envelope that this side cannot take; the message is one sentence."""


class MessagesLost(ProtocolError):
    """Messages before this one are missing. `body` is whole and may be used: what it says is cumulative."""

    def __init__(self, text: str, body: Command | Event) -> None:
        super().__init__(text)
        self.body = body


@dataclass(frozen=True, slots=True)
class Command:
    """Base of what the app may send."""


@dataclass(frozen=True, slots=True)
class Event:
    """Base of what the engine may send."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """What crosses the queue."""

    version: int
    seq: int
    body: Command | Event


# ---------------------------------------------------------------- commands


@dataclass(frozen=True, slots=True)
class Probe(Command):
    """Ask what this machine has; answered by `Machine`."""


@dataclass(frozen=True, slots=True)
class Configure(Command):
    """Load the models of a preset. Answered by `Loading`*, then `Ready` or `Error`.

    `overrides` are dotted preset keys, e.g. {"recogniser.model": "/path"}.
    """

    preset: str
    source_lang: str
    target_lang: str
    context: str = ""
    overrides: dict[str, Any] = field(default_factory=dict)
    trace: bool = False


@dataclass(frozen=True, slots=True)
class Start(Command):
    """Begin a session; the session clock is 0.0 at the first audio frame.

    `live`: audio arrives as it is spoken, so what has become old is skipped to keep up. Otherwise (a file played as
    fast as the engine takes it) every update is translated before the next one is recognised, as on a machine that is
    always fast enough.
    """

    session_id: str
    live: bool = True


@dataclass(frozen=True, slots=True)
class Audio(Command):
    """Interleaved float32 little-endian samples in [-1, 1] as the device gave them, shape [frames, channels].

    `start_s` is the session time of the first frame; a jump ahead of the previous end is a gap (lost audio).
    """

    pcm: bytes
    sample_rate: int
    channels: int
    start_s: float


@dataclass(frozen=True, slots=True)
class Flush(Command):
    """Close the open utterance now: nothing more will be heard for a while (the microphone was lost)."""


@dataclass(frozen=True, slots=True)
class Stop(Command):
    """End the session: drain the audio sent so far, finalise, then `Stopped`."""


@dataclass(frozen=True, slots=True)
class Shutdown(Command):
    """Leave the process; what is running is finalised first."""


@dataclass(frozen=True, slots=True)
class Download(Command):
    """Control a running weight download: action is "pause", "resume" or "cancel"."""

    action: str


# ---------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class Machine(Event):
    """What the engine's machine has; `models` rows are (name, present, where, bytes), of a hub's only those that are
    here. `vllm`: its version, "" where it is not installed."""

    python: str
    cpu_count: int
    ram_gib: float
    gpus: tuple[tuple[str, float, float], ...] = ()  # (name, total GiB, free GiB)
    models: tuple[tuple[str, bool, str, int], ...] = ()
    vllm: str = ""


@dataclass(frozen=True, slots=True)
class Loading(Event):
    """Progress of loading: `fraction` in [0, 1] over all stages."""

    stage: str
    fraction: float
    text: str


@dataclass(frozen=True, slots=True)
class DownloadProgress(Event):
    """Progress of one download in bytes; total 0 when unknown."""

    name: str
    done_bytes: int
    total_bytes: int
    state: str  # "running" | "paused" | "done" | "cancelled" | "failed"


@dataclass(frozen=True, slots=True)
class Ready(Event):
    """Models are loaded; a session may start. `info` goes into the session log's first line."""

    preset: str
    source_lang: str
    target_lang: str
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Activity(Event):
    """Heartbeat while a session runs: how far the recogniser has listened and whether it hears speech.

    `audio_s`: audio received; `processed_s`: audio the recogniser has taken; `lag_s`: how far the newest stable
    text is behind the newest speech.
    """

    audio_s: float
    processed_s: float
    speech: bool
    lag_s: float


@dataclass(frozen=True, slots=True)
class Caption(Event):
    """The state of one utterance, always cumulative; `stable` only ever grows.

    `audio_s` is the end of the newest source word considered, `covered_s` that of the newest one whose translation is
    stable (None before any), `clock_s` the audio that the recogniser had taken into account, `emitted_s` the session
    time when this was built.
    `start_s`/`end_s` span the utterance's words. `stages` maps a stage name to milliseconds.
    """

    utterance_id: int
    stable: str
    held: str
    source_stable: str
    source_tail: str
    covered_source_units: int | None
    final: bool
    reason: str
    start_s: float
    end_s: float
    audio_s: float
    emitted_s: float
    stages: dict[str, float] = field(default_factory=dict)
    tokens: tuple[dict[str, Any], ...] = ()
    covered_s: float | None = None
    clock_s: float | None = None


@dataclass(frozen=True, slots=True)
class Health(Event):
    """Capture health and degraded states; `text` is one sentence.

    `state`: "ok", "note" (worth knowing once, nothing has failed) or a named degraded state.
    """

    component: str
    state: str
    text: str
    counters: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Error(Event):
    """Something failed; one sentence for the person, the traceback is in the log. `fatal`: the engine goes away."""

    code: str
    message: str
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class Stopped(Event):
    """The session has ended and every caption was sent before this."""

    session_id: str
    audio_s: float
    wall_s: float


# ---------------------------------------------------------------- sequence


class Numberer:
    """Wraps what one side sends into envelopes with rising sequence numbers."""

    def __init__(self) -> None:
        self._seq: Iterator[int] = count()

    def wrap(self, body: Command | Event) -> Envelope:
        return Envelope(PROTOCOL_VERSION, next(self._seq), body)


Body = TypeVar("Body", bound=Command | Event)


class Receiver(Generic[Body]):
    """Checks what one side receives: version, direction, and that sequence numbers rise without a hole."""

    def __init__(self, accepts: type[Body]) -> None:
        self._accepts = accepts
        self._next = 0

    def unwrap(self, item: object) -> Body:
        """The body of an envelope. Raises `ProtocolError` for what does not belong here, `MessagesLost` at a hole.

        After a hole the counter continues behind it, so that one lost message is one error and not a flood.
        """
        if not isinstance(item, Envelope):
            raise ProtocolError(f"Expected an envelope on the engine queue, got {type(item).__name__}.")
        if item.version != PROTOCOL_VERSION:
            raise ProtocolError(f"The other side speaks protocol {item.version}, this one {PROTOCOL_VERSION}.")
        if not isinstance(item.body, self._accepts):
            raise ProtocolError(f"{type(item.body).__name__} does not travel in this direction.")
        if item.seq < self._next:
            raise ProtocolError(f"Message {item.seq} arrived twice or late (expected {self._next}).")
        missed, self._next = item.seq - self._next, item.seq + 1
        if missed:
            raise MessagesLost(f"{missed} message(s) before number {item.seq} were lost.", item.body)
        return item.body
