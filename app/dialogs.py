"""What stands between the controller and the dialogs in which a person chooses: presets, microphone, settings.

`app.main` makes one and connects it to the subtitle window.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from PySide6.QtWidgets import QWidget

from app.capture_stream import rescan_devices
from app.controller import Controller
from app.devices import list_inputs, tidy
from app.downloads import Downloads
from app.errors import UserError
from app.files import sessions_folder, settings_file
from app.mic_check import MicrophoneCheck
from app.microphone import MicrophoneSource
from app.observe import Notifier
from app.options import RunOptions, overrides_of
from app.preset_cards import disk_free_gib, preset_cards
from app.settings import Settings, SettingsStore, Speed
from app.status import Status
from app.tasks import Tasks
from app.threads import in_thread
from app.widgets.microphones_dialog import MicrophonesDialog
from app.widgets.presets_dialog import PresetChoice, PresetsDialog
from app.widgets.settings_dialog import SettingsDialog

log = logging.getLogger(__name__)

LIST_S = 10.0


class Dialogs:
    """Presets, microphones and settings. `options` are those in use; `changed` tells when another preset or pair is."""

    def __init__(
        self,
        parent: QWidget,
        controller: Controller,
        settings: SettingsStore,
        options: RunOptions,
        open_look: Callable[[], None],
    ) -> None:
        self.options = options
        self.changed: Notifier[RunOptions] = Notifier()
        self.presets: PresetsDialog | None = None
        self.microphones: MicrophonesDialog | None = None
        self.settings_dialog: SettingsDialog | None = None
        self.check = MicrophoneCheck(lambda key: MicrophoneSource(key))
        self.downloads = Downloads()
        self._parent, self._controller, self._settings, self._open_look = parent, controller, settings, open_look
        self._tasks = Tasks(controller.tell)
        self._own_level = self._choosing = False
        self._unsubscribe = [
            controller.machines.subscribe(lambda _: self._refresh_cards()),
            controller.downloads.subscribe(self.downloads.report),
            controller.changed.subscribe(self._status),
            controller.level.subscribe(self._session_level),
            settings.changed.subscribe(self._settings_changed),
            settings.problem.subscribe(self._settings_problem),
            self.downloads.changed.subscribe(lambda _: self._show_downloads()),
            self.check.level.subscribe(self._check_level),
            self.check.states.subscribe(self._check_state),
            self.check.problems.subscribe(self._check_problem),
        ]

    async def close(self) -> None:
        """Close the dialogs and finish what runs."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        for dialog in (self.presets, self.microphones, self.settings_dialog):
            if dialog is not None:
                dialog.hide()
        await self.check.close()
        await self._tasks.finish()
        for dialog in (self.presets, self.microphones, self.settings_dialog):
            if dialog is not None:
                dialog.deleteLater()

    def keep_speed(self, preset: str, speed: Speed) -> None:
        """What a session has measured."""
        self._settings.update(speeds={**self._settings.value.speeds, preset: speed})

    # ------------------------------------------------------------ presets

    @property
    def must_ask(self) -> bool:
        """A licence of the preset in use has not been accepted, and nobody has asked for it on the command line."""
        licences = self._controller.preset.needs.licences
        return not self.options.autostart and any(name not in self._settings.value.licences for name in licences)

    def open_presets(self) -> None:
        """The preset dialog, in front."""
        if self.presets is None:
            self.presets = PresetsDialog(self._parent)
            self.presets.chosen.connect(lambda choice: self._tasks.spawn(lambda: self._use(choice)))
            self.presets.download.connect(self._control_download)
        dialog, options = self.presets, self.options
        self._show_cards()
        kept = self._settings.value
        dialog.show_choice(
            options.preset, options.source_lang, options.target_lang, options.context, kept.server, kept.token_file
        )
        self._show_downloads()
        dialog.show_running(self._controller.status.wanted)
        _raise(dialog)
        if self._controller.machine is None:
            self._tasks.spawn(self._controller.probe)

    def _refresh_cards(self) -> None:
        if self.presets is not None and self.presets.isVisible():
            self._show_cards()

    def _show_cards(self) -> None:
        if self.presets is not None:
            kept, machine = self._settings.value, self._controller.machine
            cards, problems = preset_cards(machine, kept.licences, kept.speeds, kept.models, disk_free_gib())
            self.presets.show_cards(cards, problems, asking=machine is None)

    def _show_downloads(self) -> None:
        if self.presets is not None:
            self.presets.show_downloads(list(self.downloads.rows.values()))

    def _control_download(self, action: str) -> None:
        try:
            self._controller.engine.download(action)
        except UserError as error:
            self._controller.tell(str(error))

    async def _use(self, choice: PresetChoice) -> None:
        kept, self._choosing = self._settings.value, True
        self._settings.update(
            preset=choice.preset,
            source_lang=choice.source_lang,
            target_lang=choice.target_lang,
            context=choice.context,
            licences=tuple(dict.fromkeys((*kept.licences, *choice.licences))),
            server=choice.server,
            token_file=choice.token_file,
        )
        self._choosing = False
        self._controller.notice("dialogs", "")
        self.options = replace(
            self.options,
            preset=choice.preset,
            source_lang=choice.source_lang,
            target_lang=choice.target_lang,
            context=choice.context,
            overrides=self._overrides(choice.preset),
        )
        self.changed.emit(self.options)
        await self._reconfigure(start=choice.start)

    def _overrides(self, preset: str) -> dict[str, Any]:
        """What the settings change in a preset; what the command line has changed stays as it is."""
        if self.options.autostart:
            return self.options.overrides
        return overrides_of(self._settings.value, preset)

    async def _reconfigure(self, *, start: bool) -> None:
        controller, wanted = self._controller, self.options.configure()
        if start and not controller.status.wanted:
            await controller.prepare(wanted)
            await controller.start()
        elif wanted != controller.configure or not controller.loaded:
            await controller.reconfigure(wanted)

    # ------------------------------------------------------------ microphones

    def open_microphones(self) -> None:
        """The microphone dialog, in front."""
        if self.microphones is None:
            dialog = self.microphones = MicrophonesDialog(self._parent)
            dialog.listen.connect(lambda key: self._tasks.spawn(lambda: self._listen(key)))
            dialog.left.connect(lambda: self._tasks.spawn(self.check.close))
            dialog.refresh.connect(lambda: self._tasks.spawn(self._look_again))
            dialog.record.connect(self.check.record)
            dialog.play.connect(self.check.play)
            dialog.chosen.connect(lambda key: self._tasks.spawn(lambda: self._use_microphone(key)))
        self._tasks.spawn(self._show_microphones)

    async def _show_microphones(self) -> None:
        dialog = self.microphones
        if dialog is None:
            return
        try:
            devices, problem = await in_thread(lambda: tidy(list_inputs()), LIST_S), ""
        except (UserError, TimeoutError) as error:
            devices, problem = [], str(error) or "The sound system does not answer."
        dialog.show_devices(devices, self.options.microphone)
        dialog.show_problem(problem)
        dialog.show_overflows(self._controller.status.overflows)
        if not dialog.isVisible():
            _raise(dialog)
        else:
            await self._listen(dialog.key)

    async def _look_again(self) -> None:
        await self.check.close()
        if not self._controller.status.phase.running:  # a rescan would end the session's stream
            await rescan_devices()
        await self._show_microphones()

    async def _listen(self, key: str | None) -> None:
        """Show the level of this device; that of the session where it is the one in use."""
        self._own_level = self._controller.status.phase.running and key == self.options.microphone
        if self._own_level:
            await self.check.close()
        elif self.microphones is not None and self.microphones.isVisible():
            await self.check.listen(key)

    async def _use_microphone(self, key: str | None) -> None:
        await self.check.close()
        self._settings.update(microphone=key)
        if key == self.options.microphone and self.options.file is None:
            return
        self.options = replace(self.options, file=None, microphone=key, microphone_required=False)
        await self._controller.use_source(self.options.make_source)

    def _session_level(self, peak: float) -> None:
        if self._own_level and self.microphones is not None:
            self.microphones.show_level(peak)

    def _check_level(self, peak: float) -> None:
        if not self._own_level and self.microphones is not None:
            self.microphones.show_level(peak)

    def _check_state(self, state: str) -> None:
        if self.microphones is not None:
            self.microphones.show_state(state)

    def _check_problem(self, sentence: str) -> None:
        if self.microphones is not None:
            self.microphones.show_problem(sentence)

    # ------------------------------------------------------------ settings

    def open_settings(self) -> None:
        """The settings dialog, in front."""
        if self.settings_dialog is None:
            dialog = SettingsDialog(self._settings.value, sessions_folder(), settings_file(), self._parent)
            dialog.changed.connect(lambda values: self._settings.update(**values))
            dialog.reset.connect(self._reset)
            dialog.open_presets.connect(self.open_presets)
            dialog.open_microphones.connect(self.open_microphones)
            dialog.open_look.connect(self._open_look)
            self.settings_dialog = dialog
        _raise(self.settings_dialog)

    def _reset(self) -> None:
        fresh = Settings()
        self._settings.update(**{name: getattr(fresh, name) for name in Settings.model_fields})

    def _settings_changed(self, settings: Settings) -> None:
        if self.settings_dialog is not None:
            self.settings_dialog.show_settings(settings)
        self._refresh_cards()
        if not self._choosing and self._overrides(self.options.preset) != self.options.overrides:
            self.options = replace(self.options, overrides=self._overrides(self.options.preset))
            if self._controller.loaded:
                self._tasks.spawn(lambda: self._reconfigure(start=False))
            else:
                self._tasks.spawn(lambda: self._controller.prepare(self.options.configure()))

    def _settings_problem(self, sentence: str) -> None:
        self._controller.notice("settings", sentence)
        if self.settings_dialog is not None:
            self.settings_dialog.show_problem(sentence)

    def _status(self, status: Status) -> None:
        if self.presets is not None:
            self.presets.show_running(status.wanted)
        if self.microphones is not None:
            self.microphones.show_overflows(status.overflows)


def _raise(widget: QWidget) -> None:
    widget.show()
    widget.raise_()
    widget.activateWindow()
