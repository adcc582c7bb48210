"""A session in the terminal: starts the controller, shows it, ends it on Ctrl-C, and says where everything is."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable

from app.controller import Controller, SessionEnded
from app.engine_client import EngineClient, EngineState
from app.errors import UserError
from app.options import RunOptions
from app.records import Records
from app.signals import on_signals
from app.status import Phase
from app.terminal import TerminalView
from engine.presets import LANGUAGE_NAMES

log = logging.getLogger(__name__)

OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def run_headless(options: RunOptions, engine: EngineClient | None = None) -> int:
    """Run one session to its end.

    The exit status: 0; 1 when the engine died or a file could not be written; 2 when what was asked cannot be done.
    """
    return asyncio.run(_Run(options, engine).run())


class _Run:
    def __init__(self, options: RunOptions, engine: EngineClient | None) -> None:
        self.view = TerminalView(sys.stdout, sys.stderr)
        self.records = Records(options, self.view.say)
        self.controller = Controller(
            options.configure(), options.make_source, recorders=self.records.recorders, engine=engine
        )
        self.options = options
        self.interrupts = 0
        self.leave = asyncio.Event()
        self.tasks: set[asyncio.Task[object]] = set()
        self.quiet: Callable[[], None] = lambda: None

    async def run(self) -> int:
        """The session, with the terminal in order and all files closed whatever happens."""
        controller, view = self.controller, self.view
        view.say(self._title())
        with view, on_signals(self._interrupted):
            self.quiet = controller.changed.subscribe(view.status)
            controller.subtitles.changed.subscribe(view.line)
            try:
                status = await self._session()
            finally:
                await controller.close()
        problems = self.records.close()
        for sentence in (*problems, *self.records.summary()):
            view.say(sentence)
        return status or (FAILED if problems or self.records.exporter.failed else OK)

    async def _session(self) -> int:
        starting = asyncio.create_task(self.controller.start())
        leaving = asyncio.create_task(self.leave.wait())
        await asyncio.wait({starting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not starting.done():
            starting.cancel()
            await asyncio.wait({starting})
            self.quiet()
            self.view.say("Stopped before the session began.")
            self.controller.kill()  # there is nothing to finish, and models load for seconds
            return INTERRUPTED
        try:
            starting.result()
        except UserError as error:
            self.view.say(str(error))
            return FAILED if self.controller.engine.state is EngineState.DEAD else BAD_INPUT
        return self._verdict(await self.controller.finished())

    def _verdict(self, ended: SessionEnded | None) -> int:
        if ended is None:
            return INTERRUPTED
        if self.interrupts > 1:
            self.view.say("Ended at once: the last words may be missing.")
            return INTERRUPTED
        if not ended.reason:
            return OK
        self.view.say(ended.reason)
        return BAD_INPUT if self.controller.status.phase is Phase.SOURCE_LOST else FAILED

    def _title(self) -> str:
        names = [LANGUAGE_NAMES.get(code, code) for code in (self.options.source_lang, self.options.target_lang)]
        preset = self.controller.preset
        label = f" ({preset.quality})" if preset.quality else ""
        return f"{preset.title}: {' to '.join(names)}{label}. Ctrl-C stops."

    # ------------------------------------------------------------ Ctrl-C

    def _interrupted(self) -> None:
        """First: finish the last words. Second: end the engine at once. What is stable is kept in both cases."""
        self.interrupts += 1
        if not self.controller.status.phase.running:
            self.leave.set()
        if self.interrupts == 1:
            self._spawn(self.controller.stop)
        else:
            self.controller.kill()

    def _spawn(self, function: Callable[[], object]) -> None:
        task: asyncio.Task[object] = asyncio.ensure_future(function())  # type: ignore[call-overload]
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
