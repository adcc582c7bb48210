"""Wiring of the window: options → controller and records → window, on one asyncio loop that is Qt's."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import qasync
from PySide6.QtWidgets import QApplication

from app.controller import Controller
from app.dialogs import Dialogs
from app.engine_client import EngineClient, EngineError
from app.errors import UserError
from app.files import log_folder, settings_file
from app.i18n import use_language
from app.options import RunOptions
from app.records import Records
from app.settings import SettingsStore, load_settings
from app.signals import on_signals
from app.single_instance import SingleInstance
from app.speed import SpeedMeter
from app.status import Phase
from app.transcripts import Transcripts
from app.widgets.look import use_theme
from app.widgets.subtitle_window import SubtitleWindow
from app.window_services import WindowServices
from engine.presets import LANGUAGE_NAMES

log = logging.getLogger(__name__)

LINGER_S = 6.0  # the last lines of a file stay readable for so long
OK, FAILED, BAD_INPUT = 0, 1, 2


def run_window(
    options: RunOptions,
    engine: EngineClient | None = None,
    settings: SettingsStore | None = None,
    single: bool = False,
) -> int:
    """Show the window until it is closed or, with `autostart` and a file, that has ended; the exit status.

    `settings`: what the person may change on the way; without them they are read here. `single`: where the program runs
    already, that one comes to the front instead.

    0; 2 when what was asked cannot be done; 1 when the engine died or a file could not be written. Raises
    `PresetError`.
    """
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(sys.argv[:1])
    app.setApplicationName("Surtitle")
    app.setQuitOnLastWindowClosed(False)
    instance = SingleInstance(log_folder()) if single else None
    if instance is not None and not instance.claim():
        return _raise_first(instance)
    try:
        with qasync.QEventLoop(app) as loop:
            main = Main(options, engine, settings)
            if instance is not None:
                instance.raised.connect(main.window.raise_up)
            status: int = loop.run_until_complete(main.run())
    finally:
        if instance is not None:
            instance.close()
    return status


def _raise_first(instance: SingleInstance) -> int:
    if instance.ask_first():
        sys.stderr.write("Surtitle is running already: its window was brought to the front.\n")
        return OK
    raise UserError("Surtitle is running already but does not answer: end it, then start again.")


class Main:
    """One run of the window. Everything that takes time is a task; `_leaving` ends them all."""

    def __init__(
        self, options: RunOptions, engine: EngineClient | None = None, settings: SettingsStore | None = None
    ) -> None:
        self.options = options
        self.settings = settings or SettingsStore(load_settings(settings_file())[0], settings_file())
        self.records = Records(options)
        speed = SpeedMeter(lambda: self.controller.engine.pid, lambda *measured: self.dialogs.keep_speed(*measured))
        self.controller = Controller(
            options.configure(), options.make_source, recorders=[*self.records.recorders, speed], engine=engine
        )
        look = self.settings.value.window
        use_language(look.language)
        use_theme(look.theme)
        self.window = SubtitleWindow(self.controller.subtitles, _title(options), settings=look)
        self.services = WindowServices(self.window, self.controller, self.settings)
        self.dialogs = Dialogs(self.window, self.controller, self.settings, options, self.services.show_window_dialog)
        self.transcripts = Transcripts(
            self.window,
            self.records.transcript,
            self.settings,
            lambda sentence: self.controller.tell(sentence),
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._leaving = asyncio.Event()
        self._asked_to_leave = 0
        self._exit = OK

    async def run(self) -> int:
        """The window comes first, the engine starts behind it. Ctrl-C is taken from the beginning to the end."""
        with on_signals(self._leave):
            return await self._run()

    async def _run(self) -> int:
        controller, window = self.controller, self.window
        controller.changed.subscribe(window.show_status)
        controller.level.subscribe(window.show_level)
        window.toggle.connect(lambda: self._spawn(self._toggle))
        window.restart.connect(lambda: self._spawn(controller.restart))
        window.leave.connect(self._leave)
        self.dialogs.changed.subscribe(lambda options: window.setWindowTitle(_title(options)))
        window.open_presets.connect(self.dialogs.open_presets)
        window.open_microphones.connect(self.dialogs.open_microphones)
        window.open_settings.connect(self.dialogs.open_settings)
        window.open_transcript.connect(self.transcripts.open)
        window.open_export.connect(self.transcripts.open_export)
        window.show_status(controller.status)
        window.show()
        self.services.start()
        try:
            self._spawn(self._begin)
            await self._leaving.wait()
            await self.dialogs.close()
            await controller.close()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        finally:
            window.detach()
            window.hide()
            await self.services.close()
            await self.transcripts.close()
            problems = self.records.close()
            for sentence in (*problems, *self.records.summary()):
                log.info("%s", sentence)
                sys.stderr.write(sentence + "\n")
        return self._exit or (FAILED if problems or self.records.exporter.failed else OK)

    async def _begin(self) -> None:
        await asyncio.sleep(0)  # the window paints first
        if not self.options.autostart:
            self.transcripts.offer_recovery()
            if self.dialogs.must_ask:
                self.dialogs.open_presets()
            else:
                await self.controller.load()
            return
        await self.controller.start()
        if self.options.file is None:
            return
        ended = await self.controller.finished()
        if ended is not None and ended.reason:
            self._exit = BAD_INPUT if self.controller.status.phase is Phase.SOURCE_LOST else FAILED
        elif not self._leaving.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._leaving.wait(), 0 if self.options.fast else LINGER_S)
            self._leaving.set()

    async def _toggle(self) -> None:
        if self.controller.status.wanted:
            await self.controller.stop()
        elif self.dialogs.must_ask:
            self.dialogs.open_presets()
        else:
            await self.controller.start()

    def _leave(self) -> None:
        """First: finish the last words. Asked again meanwhile: end at once."""
        self._asked_to_leave += 1
        self._leaving.set()
        if self._asked_to_leave > 1:
            self.controller.kill()

    def _spawn(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        task = asyncio.ensure_future(self._guarded(function))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """What goes wrong is already in the state line; here it is logged and becomes the exit status."""
        try:
            await function()
        except UserError as error:
            if not self._leaving.is_set():
                self._exit = FAILED if isinstance(error, EngineError) else BAD_INPUT
            log.warning("%s", error)
        except Exception:
            self._exit = FAILED
            log.exception("A task of the window failed.")


def _title(options: RunOptions) -> str:
    source, target = (LANGUAGE_NAMES.get(code, code) for code in (options.source_lang, options.target_lang))
    return f"Surtitle: {source} to {target}"
