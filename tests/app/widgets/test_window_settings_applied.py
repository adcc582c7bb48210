"""What the settings of the window do to it, and what it asks to be remembered."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QColor, QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QToolButton
from pytestqt.qtbot import QtBot

from app.status import Phase, Status
from app.subtitles import Subtitles
from app.widgets.control_bar import SHOWN, SIDE
from app.widgets.look import CONTRAST, Look, blend, contrast, is_dark, light, look_of, worst_contrast
from app.widgets.tray import OFFERED, Tray
from app.widgets.window_actions import DEFAULT_KEYS, IDS, keys_of
from app.window_settings import MARKS, Geometry, WindowSettings
from engine.messages import Caption
from tests.app.widgets.conftest import Open


def caption(uid: int, stable: str, held: str = "", source: str = "", tail: str = "", final: bool = False) -> Caption:
    return Caption(uid, stable, held, source, tail, None, final, "test", 0.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize("lines", [1, 2, 3, 6])
@pytest.mark.parametrize("points", [8.0, 24.0, 144.0])
def test_so_many_lines_fit_whatever_the_size(open_window: Open, lines: int, points: float) -> None:
    window = open_window(lines=lines, font_pt=points)
    area = QGuiApplication.primaryScreen().availableGeometry()
    assert area.contains(window.geometry())
    if window.sizeHint().height() <= area.height():
        assert window.view.rows == lines


def test_more_lines_grow_upwards_and_are_remembered(open_window: Open, qtbot: QtBot) -> None:
    window = open_window(lines=2)
    bottom, rows = window.geometry().bottom(), window.view.rows
    with qtbot.waitSignal(window.remember) as asked:
        window.actions_["more_lines"].trigger()
    assert asked.args[0].lines == 3
    assert window.view.rows == rows + 1
    assert window.geometry().bottom() == bottom
    for _ in range(9):
        window.actions_["more_lines"].trigger()
    assert window.settings.lines == 6


def test_the_size_of_letters_has_limits(open_window: Open) -> None:
    window = open_window(font_pt=10)
    for _ in range(4):
        window.actions_["smaller"].trigger()
    assert window.settings.font_pt == 8
    assert window._look.font.pointSizeF() == 8


def test_reading_mode_shows_stable_text_only(open_window: Open, subtitles: Subtitles) -> None:
    window = open_window()
    subtitles.apply(caption(0, "Guten", " Morgen"))
    assert window.view.text() == ["Guten Morgen"]
    window.actions_["reading_mode"].trigger()
    assert window.view.text() == ["Guten"]
    window.actions_["reading_mode"].trigger()
    assert window.view.text() == ["Guten Morgen"]


def test_the_source_line_shows_what_was_heard(open_window: Open, subtitles: Subtitles) -> None:
    window = open_window()
    subtitles.apply(caption(0, "Guten", "", source="Good", tail="morning"))
    assert window.view.source_text() == ""
    height, rows = window.height(), window.view.rows
    window.actions_["source_line"].trigger()
    assert window.view.source_text() == "Good morning"
    assert window.view.rows == rows
    assert window.height() > height
    subtitles.apply(caption(1, "", "", source="And " * 100 + "the end"))
    assert window.view.source_text().endswith("the end"), "the newest words are the ones to see"


@pytest.mark.parametrize("mark", MARKS)
def test_held_text_has_a_mark_of_the_same_width(open_window: Open, subtitles: Subtitles, mark: str) -> None:
    window = open_window(mark=mark, lines=6)
    text = " und so weiter bis das Ende der Zeile erreicht ist"
    subtitles.apply(caption(0, "Guten", text))
    held = window.view.text()
    subtitles.apply(caption(0, "Guten" + text))
    assert window.view.text() == held


def ink(window: object, colour: QColor) -> int:
    image = window.view.grab().toImage()  # type: ignore[attr-defined]
    return sum(image.pixelColor(x, y) == colour for y in range(image.height()) for x in range(0, image.width(), 2))


def test_colours_and_outline_are_painted(open_window: Open, subtitles: Subtitles) -> None:
    window = open_window(stable="#ff0000", outline="#00ff00", outline_px=3.0, smooth=False)
    subtitles.apply(caption(0, "Guten Morgen"))
    assert ink(window, QColor("#ff0000")) > 50
    assert ink(window, QColor("#00ff00")) > 50


def test_emoji_are_pictures_also_with_an_outline(open_window: Open, subtitles: Subtitles) -> None:
    if "Noto Color Emoji" not in Look().font.families():
        pytest.skip("there is no font with emoji")
    window = open_window(outline_px=2.0, outline="#000000", smooth=False)
    subtitles.apply(caption(0, "🇩🇪🇩🇪🇩🇪"))
    image = window.view.grab().toImage()
    colours = [image.pixelColor(x, y) for y in range(image.height()) for x in range(image.width())]
    assert sum(c.alpha() > 200 and c.saturation() > 150 for c in colours) > 50


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_every_text_can_be_read_by_default_on_any_desktop(qapp: QApplication, theme: str) -> None:
    look = look_of(WindowSettings(theme=theme))
    for colour in (look.stable, look.held, look.quiet, look.warning):
        assert worst_contrast(colour, look.background) >= CONTRAST
    assert contrast(look.stable, look.held) > 1.5


def test_the_state_line_can_be_read_on_a_window_without_background(qapp: QApplication) -> None:
    for theme in ("dark", "light"):
        look = look_of(WindowSettings(theme=theme, opacity=0.0))
        assert look.background.alpha() == 0
        for colour in (look.quiet, look.warning, look.stable):
            assert worst_contrast(colour, look.bar_background) >= CONTRAST


def test_dark_and_light(qapp: QApplication) -> None:
    assert is_dark("dark")
    assert not is_dark("light")
    white = blend(look_of(WindowSettings(theme="light")).background, QColor("white"))
    assert contrast(light().stable, white) > contrast(light().held, white)


def test_last_lines_stay_and_then_fade(open_window: Open, subtitles: Subtitles, qtbot: QtBot) -> None:
    window = open_window(smooth=False, font_pt=8)
    window.view.set_linger(0.3)  # the settings allow no less than six seconds
    window.show_status(Status(Phase.LISTENING, speech=True))
    subtitles.apply(caption(0, "Guten Morgen"))
    qtbot.wait(600)
    assert window.view.text() == ["Guten Morgen"], "while somebody speaks nothing goes"
    window.show_status(Status(Phase.LISTENING, speech=False))
    assert window.view.text() == ["Guten Morgen"]
    qtbot.waitUntil(lambda: window.view.text() == [], timeout=20_000)
    subtitles.apply(caption(1, "Weiter"))
    assert window.view.text() == ["Weiter"], "what is gone does not come back"
    subtitles.apply(caption(0, "Guten Morgen zusammen"))
    assert window.view.text() == ["Guten Morgen zusammen", "Weiter"], "unless it changes"


def test_fading_can_be_interrupted(open_window: Open, subtitles: Subtitles, qtbot: QtBot) -> None:
    window = open_window(font_pt=8)
    window.view.set_linger(0.01)
    subtitles.apply(caption(0, "Guten Morgen"))
    qtbot.waitUntil(lambda: window.view._opacity < 1.0, timeout=20_000)
    subtitles.apply(caption(0, "Guten Morgen zusammen"))
    assert window.view._opacity == 1.0
    assert window.view.text() == ["Guten Morgen zusammen"]


def test_six_seconds_are_the_least_and_never_is_possible(open_window: Open, subtitles: Subtitles) -> None:
    window = open_window(linger_s=0)
    subtitles.apply(caption(0, "Guten Morgen"))
    assert window.view._quiet.remainingTime() > 5000
    window.apply(WindowSettings(fade=False))
    assert not window.view._quiet.isActive()


def test_rows_scroll_smoothly_and_only_when_wanted(open_window: Open, subtitles: Subtitles, qtbot: QtBot) -> None:
    window = open_window()
    subtitles.apply(caption(0, "eins"))
    subtitles.apply(caption(1, "zwei"))
    assert window.view._shift > 0
    qtbot.waitUntil(lambda: window.view._shift == 0.0, timeout=20_000)
    window.apply(WindowSettings(smooth=False))
    subtitles.apply(caption(2, "drei"))
    assert window.view._shift == 0.0


# ---------------------------------------------------------------- controls


def test_controls_come_with_the_mouse_and_go(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    width, rows = window.width(), window.view.rows
    assert not window.controls.isVisible()
    at = QPointF(30, 20)
    QApplication.sendEvent(window, QEnterEvent(at, at, QPointF(window.mapToGlobal(at.toPoint()))))
    assert window.controls.isVisible()
    assert (window.width(), window.view.rows) == (width, rows), "nothing moves for them"
    window._hide_controls.setInterval(1)
    QApplication.sendEvent(window, QEvent(QEvent.Type.Leave))
    qtbot.waitUntil(lambda: not window.controls.isVisible(), timeout=20_000)


def test_controls_that_do_not_fit_are_in_the_menu(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    window._reveal()
    window.controls.resize(3 * SIDE, SIDE)
    shown = [wish for wish in SHOWN if window.controls.buttons[wish].isVisibleTo(window.controls)]
    assert shown == ["presets", "microphones", "menu"]
    offered = {action.objectName() for action in window._menu.actions()}
    assert set(SHOWN) - {"menu"} <= offered


def test_the_tab_key_reaches_the_controls(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    window.resize(1000, window.height())
    window.activateWindow()
    window.bar.button.setFocus()
    reached = set()
    for _ in range(2 * len(SHOWN)):
        qtbot.keyClick(window.focusWidget() or window, Qt.Key.Key_Tab)
        focus = window.focusWidget()
        reached |= {wish for wish, button in window.controls.buttons.items() if button is focus}
    assert reached == set(SHOWN)


@pytest.mark.parametrize("wish", ["presets", "microphones", "transcript", "export", "settings", "look", "engine"])
def test_keys_and_buttons_open_what_others_show(open_window: Open, qtbot: QtBot, wish: str) -> None:
    window = open_window()
    window.resize(1000, window.height())
    signal = getattr(window, f"open_{wish}")
    with qtbot.waitSignal(signal):
        window.actions_[wish].trigger()
    window._reveal()
    with qtbot.waitSignal(signal):
        qtbot.mouseClick(window.controls.buttons[wish], Qt.MouseButton.LeftButton)


def test_shortcuts_can_be_changed(open_window: Open, qtbot: QtBot) -> None:
    window = open_window(shortcuts={"presets": "Ctrl+9", "export": "", "quit": "nonsense ä", "none": "Ctrl+1"})
    with qtbot.waitSignal(window.open_presets):
        qtbot.keyClick(window, Qt.Key.Key_9, Qt.KeyboardModifier.ControlModifier)
    assert window.actions_["export"].shortcut().isEmpty()
    with qtbot.assertNotEmitted(window.open_presets, wait=20):
        qtbot.keyClick(window, Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)


def test_no_key_does_two_things() -> None:
    assert len(set(DEFAULT_KEYS.values())) == len(IDS)
    keys = keys_of({"presets": "Ctrl+E"})
    assert keys["presets"] == "Ctrl+E"
    assert keys["export"] == "", "the one that somebody chose counts"


def test_every_control_has_a_name_and_says_its_key(open_window: Open) -> None:
    window = open_window()
    for kind in (QToolButton, QLabel):
        for widget in window.findChildren(kind):
            assert widget.accessibleName(), widget
    assert "Ctrl+P" in window.controls.buttons["presets"].accessibleDescription()


# ---------------------------------------------------------------- clicks and place


@pytest.mark.qt_log_ignore(r"This plugin does not support raise\(\)", extend=True)
def test_clicks_go_through_on_demand(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    window.actions_["click_through"].trigger()
    assert window.click_through
    assert window.windowHandle().flags() & Qt.WindowType.WindowTransparentForInput
    assert "Ctrl+Shift+X" in window.bar.notice.text(), "it says how that ends"
    window.show_status(Status(Phase.READY, notices=("The disk is full.",)))
    assert "Ctrl+Shift+X" in window.bar.notice.text()
    assert "The disk is full." in window.bar.notice.text(), "and hides nothing"
    window.show_status(Status(Phase.READY))
    window.raise_up()
    assert not window.click_through
    assert not window.windowHandle().flags() & Qt.WindowType.WindowTransparentForInput
    assert window.bar.notice.text() == ""


def test_keys_move_and_resize_within_the_screen(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    alt = Qt.KeyboardModifier.AltModifier
    before = window.geometry()
    qtbot.keyClick(window, Qt.Key.Key_Up, alt)
    assert window.geometry() == before.translated(0, -20)
    qtbot.keyClick(window, Qt.Key.Key_Right, alt | Qt.KeyboardModifier.ShiftModifier)
    assert window.width() == before.width() + 20
    for _ in range(80):
        qtbot.keyClick(window, Qt.Key.Key_Left, alt)
    assert window.x() == 0


def test_the_place_is_remembered_when_it_has_settled(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    with qtbot.waitSignal(window.remember, timeout=20_000) as asked:
        window.setGeometry(QRect(40, 60, 500, 200))
    kept = asked.args[0].geometry
    assert (kept.x, kept.y, kept.width, kept.height) == (40, 60, 500, 200)
    again = open_window(geometry=kept)
    assert again.geometry() == QRect(40, 60, 500, 200)


def test_a_place_that_is_off_the_screen_is_pulled_back(open_window: Open) -> None:
    screen = QGuiApplication.primaryScreen()
    far = Geometry(screen=screen.name(), x=30_000, y=-30_000, width=30_000, height=100)
    window = open_window(geometry=far)
    assert screen.availableGeometry().contains(window.geometry())


def test_a_drag_at_the_rim_shows_that_it_resizes(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    qtbot.mouseMove(window, QPoint(window.width() - 1, window.height() // 2))
    assert window.cursor().shape() is Qt.CursorShape.SizeHorCursor


@pytest.mark.qt_log_ignore("systemTrayWindowChanged", extend=True)  # the offscreen platform has no tray
def test_the_tray_offers_the_way_back(open_window: Open, qtbot: QtBot) -> None:
    window = open_window()
    tray = Tray(window.actions_, window)
    offered = [action.objectName() for action in tray.menu.actions() if action.objectName()]
    assert offered == [wish for wish in OFFERED if wish]
    with qtbot.waitSignal(tray.wanted):
        tray.menu.actions()[0].trigger()
    tray.say("4.2 s behind")
    assert tray.icon.toolTip() == "Surtitle: 4.2 s behind"
    tray.close()
