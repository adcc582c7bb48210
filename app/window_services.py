"""What stands beside the window: its dialogs, the interface's language, the engine's page, the page for browsers.

`app.main` makes one, starts it with the window and closes it with the program.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtGui import QColor
from PySide6.QtWidgets import QDialog

from app.controller import Controller
from app.engine_report import EngineReport
from app.errors import UserError
from app.i18n import use_language
from app.obs_page import ObsPage, new_token
from app.settings import Settings, SettingsStore
from app.widgets.look import look_of, use_theme
from app.widgets.subtitle_window import SubtitleWindow
from app.window_settings import WindowSettings

if TYPE_CHECKING:  # they are loaded when they are opened, so that the window is there sooner
    from app.widgets.about_dialog import AboutDialog
    from app.widgets.engine_status import EngineDialog
    from app.widgets.window_dialog import WindowDialog

log = logging.getLogger(__name__)


class WindowServices:
    """Keeps window, settings and dialogs of one mind."""

    def __init__(self, window: SubtitleWindow, controller: Controller, settings: SettingsStore) -> None:
        self.window, self.settings = window, settings
        self.report = EngineReport(controller)
        self.page = ObsPage(controller.subtitles, self._style)
        self.page_problem = ""
        self.engine_dialog: EngineDialog | None = None
        self.window_dialog: WindowDialog | None = None
        self.about_dialog: AboutDialog | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._served: tuple[bool, int, str] = (False, 0, "")
        self._serving = asyncio.Lock()
        self._closing = False
        self._shown = settings.value.window
        window.remember.connect(self._remember)
        window.open_look.connect(self.show_window_dialog)
        window.open_engine.connect(self.show_engine_dialog)
        window.open_about.connect(self.show_about_dialog)
        self._leave: Callable[[], None] = settings.changed.subscribe(self._settings_changed)

    def start(self) -> None:
        """Serve the page if the settings say so."""
        self._serve(self.settings.value.window)

    async def close(self) -> None:
        """End what runs and throw the dialogs away."""
        self._closing = True
        self._leave()
        self.report.detach()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.page.stop()
        if self.engine_dialog is not None:
            self.engine_dialog.detach()
        for dialog in (self.engine_dialog, self.window_dialog, self.about_dialog):
            if dialog is not None:
                dialog.hide()
                dialog.deleteLater()

    # ------------------------------------------------------------ dialogs

    def show_engine_dialog(self) -> None:
        """The engine's page, in front."""
        if self.engine_dialog is None:
            from app.widgets.engine_status import EngineDialog

            self.engine_dialog = EngineDialog(self.report, self.window)
            self.engine_dialog.restart.connect(self.window.restart)
        _raise(self.engine_dialog)

    def show_about_dialog(self) -> None:
        """Version, licence and notices, in front."""
        if self.about_dialog is None:
            from app.widgets.about_dialog import AboutDialog

            self.about_dialog = AboutDialog(self.window)
        _raise(self.about_dialog)

    def show_window_dialog(self) -> None:
        """Appearance, shortcuts and browsers, in front."""
        if self.window_dialog is None:
            from app.widgets.window_dialog import WindowDialog

            self.window_dialog = WindowDialog(self.settings.value.window, self.window)
            self.window_dialog.changed.connect(self._remember)
            self.window_dialog.page_changed.connect(self._page_changed)
        self._show_page()
        _raise(self.window_dialog)

    # ------------------------------------------------------------ settings

    def _remember(self, window: WindowSettings) -> None:
        kept = window.model_copy(update={"page": self.settings.value.window.page})
        self.settings.update(window=kept)

    def _settings_changed(self, settings: Settings) -> None:
        window = settings.window
        before, self._shown = self._shown, window
        if window == before:
            return
        if window.language != before.language:
            use_language(window.language)
        if window.theme != before.theme:
            use_theme(window.theme)
        self.window.apply(window)
        self.page.look_changed()
        self._serve(window)
        self._show_page()

    def _show_page(self) -> None:
        if self.window_dialog is not None:
            self.window_dialog.show_settings(self.settings.value.window, self.page.address, self.page_problem)

    # ------------------------------------------------------------ the page for browsers

    def _page_changed(self, enabled: bool, port: int) -> None:
        window = self.settings.value.window.model_copy(deep=True)
        token = window.page.token or (new_token() if enabled else "")
        window.page = window.page.model_copy(update={"enabled": enabled, "port": port, "token": token})
        self.settings.update(window=window)

    def _serve(self, window: WindowSettings) -> None:
        page = window.page
        wanted = (page.enabled and bool(page.token), page.port, page.token)
        if wanted == self._served or self._closing:
            return
        self._served = wanted
        task = asyncio.ensure_future(self._serve_now(*wanted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_now(self, enabled: bool, port: int, token: str) -> None:
        async with self._serving:
            self.page_problem = ""
            try:
                await self.page.stop()
                if enabled:
                    await self.page.start(port, token)
            except UserError as error:
                self.page_problem = str(error)
                log.warning("%s", error)
        self._show_page()

    def _style(self) -> dict[str, Any]:
        """The look, as the page understands it."""
        settings = self.settings.value.window
        look = look_of(settings)
        return {
            "font": f'"{look.font.families()[0]}"',
            "font_pt": settings.font_pt,
            "bold": settings.bold,
            "lines": settings.lines,
            "stable": look.stable.name(),
            "held": look.held.name(),
            "background": _rgba(look.background),
            "outline": look.outline.name(),
            "outline_px": settings.outline_px,
            "mark": settings.mark,
            "show_held": look.show_held,
            "smooth": settings.smooth,
            "linger_s": settings.linger_s if settings.fade else 0,
        }


def _rgba(colour: QColor) -> str:
    return f"rgba({colour.red()}, {colour.green()}, {colour.blue()}, {colour.alphaF():.3f})"


def _raise(dialog: QDialog) -> None:
    dialog.show()
    dialog.raise_()
    dialog.activateWindow()
