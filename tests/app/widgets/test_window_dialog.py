"""Appearance, shortcuts and the page for browsers: what a change does, and that it comes back after a new start."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import qasync
from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QApplication, QComboBox, QPushButton, QSpinBox, QWidget
from pytestqt.qtbot import QtBot

from app.controller import Controller
from app.playback import FileSource
from app.settings import SettingsStore, load_settings
from app.widgets.look import use_theme
from app.widgets.shortcut_editor import ShortcutEditor
from app.widgets.subtitle_window import SubtitleWindow
from app.widgets.window_dialog import WindowDialog
from app.window_services import WindowServices
from app.window_settings import Geometry, WindowSettings
from engine.messages import Configure
from tests.app.helpers import until
from tests.app.leaks import throw_away


@pytest.fixture
def dialog(qtbot: QtBot) -> Iterator[WindowDialog]:
    made = WindowDialog(WindowSettings(geometry=Geometry(width=5, height=5), opacity=0.85))
    made.show()
    yield made
    made.hide()
    throw_away(made)


def test_every_change_is_told_at_once(dialog: WindowDialog) -> None:
    told: list[WindowSettings] = []
    dialog.changed.connect(told.append)
    look = dialog.look
    look.lines.setValue(4)
    look.points.setValue(30)
    look.opacity.setValue(50)
    look.checks["reading_mode"].click()
    look.colours["stable"].chosen.emit("#ffee00")
    look.mark.setCurrentIndex(look.mark.findData("wave"))
    look.mark.activated.emit(look.mark.currentIndex())
    last = told[-1]
    assert (last.lines, last.font_pt, last.opacity, last.reading_mode, last.stable, last.mark) == (
        4,
        30,
        0.5,
        True,
        "#ffee00",
        "wave",
    )
    assert len(told) == 6
    look.theme.setCurrentIndex(look.theme.findData("light"))
    look.theme.activated.emit(look.theme.currentIndex())
    assert told[-1].stable == "", "a colour for the dark is not kept for the light"
    look.defaults.click()
    assert told[-1] == WindowSettings(geometry=Geometry(width=5, height=5))


def test_what_is_hard_to_read_is_said(dialog: WindowDialog) -> None:
    assert dialog.look.contrast.text() == "Contrast 6.6:1 at worst."
    dialog.look.opacity.setValue(10)
    assert dialog.look.contrast.text().startswith("⚠ ")
    dialog.look.outline_px.setValue(2.0)
    assert not dialog.look.contrast.text().startswith("⚠ ")


def test_showing_settings_tells_nothing(dialog: WindowDialog, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(dialog.changed), qtbot.assertNotEmitted(dialog.page_changed):
        dialog.show_settings(
            WindowSettings(lines=6, theme="light", language="de", shortcuts={"quit": "Ctrl+W"}), "", ""
        )


@pytest.fixture
def editor(qtbot: QtBot) -> Iterator[ShortcutEditor]:
    made = ShortcutEditor()
    yield made
    throw_away(made)


def type_keys(editor: ShortcutEditor, wish: str, keys: str) -> None:
    editor.edits[wish].setKeySequence(QKeySequence(keys))
    editor.edits[wish].editingFinished.emit()


def test_a_shortcut_can_be_changed_taken_away_and_put_back(editor: ShortcutEditor) -> None:
    told: list[dict[str, str]] = []
    editor.changed.connect(told.append)
    type_keys(editor, "presets", "Ctrl+9")
    type_keys(editor, "export", "")
    assert told[-1] == {"presets": "Ctrl+9", "export": ""}
    type_keys(editor, "presets", "Ctrl+P")
    assert told[-1] == {"export": ""}
    editor.reset.click()
    assert told[-1] == {}


def test_a_shortcut_is_given_only_once(editor: ShortcutEditor, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(editor.changed):
        type_keys(editor, "presets", "Ctrl+E")
    assert editor.problem.text() == "Ctrl+E is taken by “Export”."
    assert editor.edits["presets"].keySequence().toString() == "Ctrl+P"


def test_everything_has_a_name_and_the_tab_key_reaches_it(dialog: WindowDialog) -> None:
    for kind in (QComboBox, QSpinBox, QPushButton):
        for widget in dialog.findChildren(kind):
            assert widget.accessibleName() or (isinstance(widget, QPushButton) and widget.text()), widget
    reached: set[QWidget] = set()
    widget = dialog.nextInFocusChain()
    while widget is not dialog and widget not in reached:
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            reached.add(widget)
        widget = widget.nextInFocusChain()
    assert {dialog.look.theme, dialog.look.opacity, *dialog.look.colours.values()} <= reached
    assert {dialog.browser.enabled, dialog.browser.port, *dialog.keys.edits.values()} <= reached


# ---------------------------------------------------------------- wired


def run(path: Path, scenario: Callable[[WindowServices], Awaitable[None]]) -> None:
    """Window and services on Qt's loop, with the settings of that file."""

    async def play() -> None:
        controller = Controller(Configure("laptop", "en", "de"), lambda: FileSource(Path("none.wav")))
        store = SettingsStore(load_settings(path)[0], path)
        window = SubtitleWindow(controller.subtitles, "Surtitle", settings=store.value.window)
        services = WindowServices(window, controller, store)
        window.show()
        services.start()
        try:
            await scenario(services)
        finally:
            window.detach()
            window.hide()
            await services.close()
            throw_away(window)

    with qasync.QEventLoop(QApplication.instance()) as loop:
        loop.run_until_complete(play())


pytestmark = [pytest.mark.usefixtures("english"), pytest.mark.qt_log_ignore(r"support raise\(\)", extend=True)]


def test_a_change_in_the_dialog_is_seen_in_the_window_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"

    async def person(services: WindowServices) -> None:
        services.window.open_look.emit()
        assert services.window_dialog is not None
        rows = services.window.view.rows
        services.window_dialog.look.lines.setValue(rows + 2)
        assert services.window.view.rows == rows + 2
        services.window_dialog.keys.edits["quit"].setKeySequence(QKeySequence("Ctrl+W"))
        services.window_dialog.keys.edits["quit"].editingFinished.emit()
        assert services.window.actions_["quit"].shortcut().toString() == "Ctrl+W"

    run(path, person)
    window = load_settings(path)[0].window
    assert (window.lines, window.shortcuts) == (4, {"quit": "Ctrl+W"})

    async def again(services: WindowServices) -> None:
        assert services.window.view.rows == 4

    run(path, again)


def test_the_language_changes_everywhere_at_once(tmp_path: Path) -> None:
    async def person(services: WindowServices) -> None:
        services.show_window_dialog()
        services.show_engine_dialog()
        services.settings.update(window=WindowSettings(language="de"))
        assert services.window.actions_["quit"].text() == "Beenden"
        assert services.window.controls.buttons["export"].accessibleName() == "Exportieren"
        await until(lambda: services.window_dialog is not None and services.window_dialog.tabs.tabText(0) == "Aussehen")
        assert services.engine_dialog is not None
        await until(lambda: services.engine_dialog is not None and "Protokoll" in services.engine_dialog.windowTitle())
        services.settings.update(window=WindowSettings(language="en"))
        assert services.window.actions_["quit"].text() == "Quit"

    run(tmp_path / "settings.json", person)


def test_the_page_is_off_until_somebody_wants_it(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    addresses: list[str] = []

    async def person(services: WindowServices) -> None:
        await asyncio.sleep(0)
        assert services.page.address == ""
        services.show_window_dialog()
        browser = services.window_dialog.browser if services.window_dialog else None
        assert browser is not None
        browser.enabled.click()
        await until(lambda: services.page.address != "" or services.page_problem != "")
        if services.page_problem:
            pytest.skip("the port is taken on this machine")
        assert browser.address.text() == services.page.address
        addresses.append(services.page.address)
        token = services.settings.value.window.page.token
        services.window.actions_["reading_mode"].trigger()
        assert services.settings.value.window.page.token == token, "the look does not change the address"
        assert services._style()["show_held"] is False
        await services.page.stop()

    run(path, person)

    async def again(services: WindowServices) -> None:
        await until(lambda: services.page.address != "")
        assert services.page.address == addresses[0], "the address in OBS stays good"

    run(path, again)


def test_dialogs_are_dark_or_light(qapp: QApplication) -> None:
    use_theme("dark")
    assert qapp.palette().window().color().lightnessF() < 0.3
    use_theme("light")
    assert qapp.palette().window().color().lightnessF() > 0.7
