"""The heart of the app, without Qt: one engine, one source at a time, the subtitles and the recorders.

Window and terminal are views of it. On an asyncio loop (plain or qasync), everything on the loop's thread:

    controller = Controller(Configure("laptop", "en", "de"), lambda: FileSource(path), recorders=[journal])
    controller.changed.subscribe(show)          # Status, whenever it changes
    controller.subtitles.changed.subscribe(…)   # captions, already checked to be append-only
    controller.level.subscribe(…)               # peak of the sound in [0, 1]
    await controller.start()                    # engine, models, source: returns when the session runs
    outcome = await controller.finished()       # … until the file ends, stop(), loss or death
    await controller.stop()                     # drain and finalise: the last words are in when it returns
    await controller.restart()                  # after the engine's death: a new engine and a new session
    await controller.reconfigure(configure)     # another preset, pair or context; a running session goes on with it
    await controller.use_source(make_source)    # another microphone; the same
    await controller.close()                    # stop, then end the engine

`Controller(…)` raises `PresetError`; `load`, `start` and `restart` raise `UserError` (`SourceError`,
`EngineError`), which is also shown as `Status.text`. A recorder is any object with `event(event)`; it is
given `SessionBegan`, then every engine event of the session (captions that passed the append-only check,
health, errors, activity, `Stopped`) and a `Gap` where audio was lost, then `SessionEnded`, also when the
engine died.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from app.engine_client import EngineClient, EngineError, EngineState
from app.errors import UserError
from app.notices import ENGINE, Notices
from app.observe import Notifier
from app.source import Feed, Source, SourceError, SourceReport
from app.status import Phase, Status
from app.subtitles import Subtitles
from engine.messages import (
    Activity,
    Caption,
    Configure,
    DownloadProgress,
    Error,
    Event,
    Health,
    Loading,
    Machine,
    Ready,
)
from engine.presets import load_preset

log = logging.getLogger(__name__)

# Errors that may last: over when a translation arrives that was really made. All others tell of something that is over.
UNTIL_TRANSLATED = ("asr_failed", "translation_failed")
NOT_TRANSLATED = ("error", "remote:offline", "scheduler:superseded")  # reasons of captions without a new draft


@dataclass(frozen=True, slots=True)
class SessionBegan:
    """First thing a recorder hears.

    `info` is what the engine says of itself (models, heads, policy, versions).
    """

    session_id: str
    preset: str
    source_lang: str
    target_lang: str
    source_name: str
    quality: str
    began_unix_s: float
    info: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gap:
    """Audio between these session times was lost before it reached the app."""

    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """Last thing a recorder hears. `reason` is "" when all went well, else one sentence."""

    session_id: str
    audio_s: float
    wall_s: float
    reason: str = ""


Recorded = Event | SessionBegan | Gap | SessionEnded


class Recorder(Protocol):
    """Keeps what happens. What `event` raises is shown for as long as events raise it, and the session goes on."""

    def event(self, event: Recorded) -> None: ...


class Controller:
    """See the module's text. `problems` collects what recorders could not write, one sentence each."""

    def __init__(
        self,
        configure: Configure,
        make_source: Callable[[], Source],
        *,
        recorders: Iterable[Recorder] = (),
        engine: EngineClient | None = None,
    ) -> None:
        self.preset = load_preset(configure.preset, configure.overrides)
        self.preset.check_pair(configure.source_lang, configure.target_lang)
        self.configure = configure
        self.engine = engine or EngineClient()
        self.subtitles = Subtitles()
        self.changed: Notifier[Status] = Notifier()
        self.level: Notifier[float] = Notifier()
        self.status = Status(quality=self.preset.quality)
        self.problems: list[str] = []
        self.machine: Machine | None = None
        self.machines: Notifier[Machine] = Notifier()
        self.downloads: Notifier[DownloadProgress] = Notifier()
        self._make_source = make_source
        self._recorders = list(recorders)
        self._loading: asyncio.Task[Ready] | None = None
        self._session: asyncio.Task[SessionEnded] | None = None
        self._feed: Feed | None = None
        self._last: SessionEnded | None = None
        self._wanted = False
        self._attempt: object = None
        self._notices = Notices(self._show_notices)
        self.engine.events.subscribe(self._on_event)
        self.engine.died.subscribe(self._on_death)

    # ------------------------------------------------------------ what one can ask for

    async def load(self) -> Ready:
        """Start the engine if there is none and load the preset; returns when a session may start."""
        if self._loading is None or (self._loading.done() and not self.loaded):
            self._loading = asyncio.create_task(self._load())
        return await asyncio.shield(self._loading)

    async def start(self) -> None:
        """Begin a session: returns when it runs, or silently when `stop` was called meanwhile.

        The source is looked at before the models are loaded, so that a wrong file name is said at once.
        """
        already = self._wanted
        if already:
            return
        self._attempt = attempt = object()
        self._want(True)
        try:
            make_source, source = self._make_source, self._checked_source()
            ready = await self.load()
            if self._wanted and self._session is None:
                if self._make_source is not make_source:  # another was chosen while the models were loaded
                    source = self._checked_source()
                self._begin(source, ready)
        except UserError as error:
            if self._attempt is attempt:  # else it was given up for another
                self._want(False)
                self._fail(str(error))
            raise

    def _checked_source(self) -> Source:
        source = self._make_source()
        source.check()
        return source

    async def finished(self) -> SessionEnded | None:
        """Wait until the running session has ended, for whatever reason; with none running, the last one."""
        return self._last if self._session is None else await asyncio.shield(self._session)

    async def stop(self) -> SessionEnded | None:
        """End the session: what was said is drained and finalised. Also cancels a start that still loads."""
        self._attempt = None
        self._want(False)
        if self._feed is not None:
            self._feed.stop()
        return await self.finished()

    async def restart(self) -> None:
        """After the engine's death: a new engine, and a new session if one was running or wanted."""
        await self.stop()
        await self.engine.shutdown()
        await self.start()

    async def reconfigure(self, configure: Configure) -> None:
        """Another preset, pair or context from now on: what runs is finished, the models are loaded, and what ran goes
        on in a new session. Raises `PresetError` (nothing has changed then) and `UserError`.
        """
        wanted = self._wanted
        await self.prepare(configure)
        if wanted:
            await self.start()
        else:
            await self.load()

    async def prepare(self, configure: Configure) -> None:
        """As `reconfigure`, but the models are loaded by the next `load` or `start`. Raises `PresetError`."""
        preset = load_preset(configure.preset, configure.overrides)
        preset.check_pair(configure.source_lang, configure.target_lang)
        await self.stop()
        if configure == self.configure and self.loaded:
            return
        loading, self._loading = self._loading, None
        if loading is not None and not loading.done():
            await self.engine.shutdown(patience_s=0.0)  # loading cannot be interrupted otherwise
            await asyncio.gather(loading, return_exceptions=True)
        self.preset, self.configure = preset, configure
        self._show(replace(self.status, quality=preset.quality))
        self._notices.clear()

    async def use_source(self, make_source: Callable[[], Source]) -> None:
        """Another source from now on; a running session is finished and goes on in a new one, one that still loads
        begins with it. Raises `UserError`."""
        wanted = self._wanted and self._session is not None
        self._make_source = make_source
        if wanted:
            await self.stop()
            await self.start()

    async def probe(self) -> None:
        """Ask the engine what this machine has; `machines` tells. Raises `EngineError`."""
        await self.engine.start()
        await self.engine.probe()

    async def close(self) -> None:
        """Stop, then end the engine. The controller is not used any more afterwards."""
        await self.stop()
        await self.engine.shutdown()
        if self._loading is not None:
            await asyncio.gather(self._loading, return_exceptions=True)
        self._notices.clear()
        self._show(Status(Phase.OFF, quality=self.status.quality))

    def kill(self) -> None:
        """End the engine at once, without finalising: for the second Ctrl-C."""
        self.engine.kill("The engine was ended on request.")

    # ------------------------------------------------------------ loading

    @property
    def loaded(self) -> bool:
        """The engine has loaded what `configure` says, as far as it loads at all."""
        return self.engine.state in (EngineState.READY, EngineState.RUNNING, EngineState.STOPPING)

    async def _load(self) -> Ready:
        self._notices.begin()
        loading = Status(Phase.LOADING, "starting the engine", 0.0, quality=self.preset.quality)
        self._show(replace(loading, notices=self._notices.sentences))
        try:
            await self.engine.start()
            with contextlib.suppress(EngineError):  # said as a notice; models are loaded all the same
                await self.engine.probe()
            ready = await self.engine.configure(self.configure)
        except EngineError as error:
            if self._loading is asyncio.current_task():  # else another preset is being loaded already
                self._fail(str(error))
            raise
        self._show(replace(self.status, phase=Phase.READY, text="", progress=None))
        return ready

    def _fail(self, reason: str) -> None:
        if self.status.phase is not Phase.ENGINE_STOPPED:
            self._show(replace(self.status, phase=Phase.FAILED, text=reason, progress=None))

    # ------------------------------------------------------------ a session

    def _begin(self, source: Source, ready: Ready) -> None:
        session_id = str(uuid.uuid4())
        self._notices.begin()
        self.engine.start_session(session_id, source.live)
        self.subtitles.begin()
        self._feed = Feed(self.engine.send_audio, lambda *gap: self._record(Gap(*gap)))
        self._feed.level.subscribe(self.level.emit)
        self._feed.reports.subscribe(self._on_report)
        self._record(
            SessionBegan(
                session_id,
                self.configure.preset,
                self.configure.source_lang,
                self.configure.target_lang,
                source.name,
                self.preset.quality,
                time.time(),
                ready.info,
            )
        )
        notices = self._notices.sentences
        self._show(Status(Phase.LISTENING, quality=self.status.quality, source=source.name, notices=notices))
        self._session = asyncio.create_task(self._run(session_id, source, self._feed))

    async def _run(self, session_id: str, source: Source, feed: Feed) -> SessionEnded:
        began_s, lost, reason, audio_s = time.monotonic(), "", "", 0.0
        try:
            lost = await self._play(source, feed)
            self._show(replace(self.status, phase=Phase.STOPPING, speech=False))
            audio_s = (await self.engine.stop_session()).audio_s
        except EngineError as error:
            reason, audio_s = str(error), feed.sent_s
        finally:
            self._feed = self._session = None
            self._want(False)
            self.level.emit(0.0)
            self._notices.passed(ENGINE)
            self._notices.say("source", "")
        self.subtitles.drop_held()
        ended = self._last = SessionEnded(session_id, audio_s, time.monotonic() - began_s, reason or lost)
        self._record(ended)
        if reason:
            self._fail(reason)
        else:
            phase = Phase.SOURCE_LOST if lost else Phase.READY
            self._show(replace(self.status, phase=phase, text=lost, lag_s=0.0))
        return ended

    async def _play(self, source: Source, feed: Feed) -> str:
        """Run the source to its end; the sentence of its loss, or "". Raises `EngineError` on the death."""
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def watch(state: EngineState) -> None:
            if state is not EngineState.RUNNING and not gone.done():
                gone.set_result(None)

        unsubscribe = self.engine.states.subscribe(watch)
        watch(self.engine.state)
        playing = asyncio.create_task(source.run(feed))
        try:
            await asyncio.wait({playing, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not playing.done():
                playing.cancel()
                await asyncio.wait({playing})
                told = self._notices.of(ENGINE) or "The engine ended the session by itself."
                raise EngineError(self.engine.reason or told)
            playing.result()
        except SourceError as error:
            return str(error)
        except EngineError:
            raise
        except Exception as error:
            log.exception("The source '%s' failed.", source.name)
            return f"The sound of '{source.name}' failed ({type(error).__name__}); the log has the details."
        finally:
            unsubscribe()
        return ""

    # ------------------------------------------------------------ what the engine says

    def _on_event(self, event: Event) -> None:
        match event:
            case Loading() if self.status.phase is Phase.LOADING:
                self._show(replace(self.status, text=event.text, progress=min(1.0, max(0.0, event.fraction))))
            case Caption():
                if not self.subtitles.apply(event):
                    return
                if event.reason not in NOT_TRANSLATED:
                    self._notices.passed(ENGINE)
            case Activity() if self._feed is not None:
                self._feed.processed(event.processed_s)
                self._show(replace(self.status, speech=event.speech, lag_s=event.lag_s, audio_s=event.audio_s))
            case Health(state="note"):
                self._notices.moment(ENGINE, event.text, over=True)
            case Health():
                self._notices.health(event.component, "" if event.state == "ok" else event.text)
            case Error():
                over = self._session is None or event.code not in UNTIL_TRANSLATED
                self._notices.moment(ENGINE, event.message, over=over)
            case Machine():
                self.machine = event
                self.machines.emit(event)
            case DownloadProgress():
                self.downloads.emit(event)
        if self._session is not None and not isinstance(event, Loading | Ready):
            self._record(event)

    def _on_report(self, report: SourceReport) -> None:
        gone = report.lost and not self.status.lost
        self._show(replace(self.status, source=report.name, lost=report.lost, overflows=report.overflows))
        self._notices.say("source", report.trouble)
        if gone:
            with contextlib.suppress(EngineError):  # said by the engine's own state
                self.engine.flush()  # no more sound will close what was being said

    def notice(self, origin: str, sentence: str) -> None:
        """Show what is not well, by who says it (see `Notices`); "" takes it back."""
        self._notices.say(origin, sentence)

    def tell(self, sentence: str) -> None:
        """Show for a while what a dialog could not do."""
        self._notices.moment("dialogs", sentence, over=True)

    def _show_notices(self) -> None:
        self._show(replace(self.status, notices=self._notices.sentences))

    def _on_death(self, reason: str) -> None:
        self._show(replace(self.status, phase=Phase.ENGINE_STOPPED, text=reason, progress=None, speech=False))

    def _record(self, event: Recorded) -> None:
        failed = ""
        for recorder in self._recorders:
            try:
                recorder.event(event)
            except Exception as error:  # whatever it is: the others must hear, and the session must end
                failed = _sentence(error)
                if failed not in self.problems:
                    log.exception("A recorder failed on %s.", type(event).__name__)
                    self.problems.append(failed)
        if failed or not isinstance(event, SessionEnded):  # after a failure: it works again
            self.notice("record", failed)

    def _want(self, wanted: bool) -> None:
        self._wanted = wanted
        self._show(self.status)

    def _show(self, status: Status) -> None:
        status = replace(status, wanted=self._wanted)
        if status != self.status:
            self.status = status
            self.changed.emit(status)


def _sentence(error: Exception) -> str:
    """What is said of a recorder that failed."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        return f"The transcript cannot be written: {error.strerror or error}."
    return f"Something of this session could not be recorded ({type(error).__name__}); the log has the details."
