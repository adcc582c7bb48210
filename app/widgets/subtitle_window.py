"""The subtitle overlay: frameless, above other windows where the platform allows, moved and resized by hand or keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from PySide6.QtCore import QEvent, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import (
    QCloseEvent,
    QContextMenuEvent,
    QEnterEvent,
    QGuiApplication,
    QPainter,
    QPainterPath,
    QPaintEvent,
)
from PySide6.QtWidgets import QApplication, QHBoxLayout, QMenu, QSizeGrip, QVBoxLayout, QWidget

from app.i18n import fill, translate
from app.status import BEHIND_S, Phase, Status
from app.subtitles import Subtitles
from app.widgets.control_bar import ControlBar
from app.widgets.icons import program_icon
from app.widgets.look import Look, look_of
from app.widgets.sentences import state_line
from app.widgets.state_bar import StateBar
from app.widgets.subtitle_frame import Frame
from app.widgets.subtitle_view import SubtitleView
from app.widgets.tray import Tray
from app.widgets.window_actions import WindowActions
from app.window_settings import Geometry, WindowSettings

HIDE_MS = 1200  # the controls stay so long after the mouse has left
MENU = (
    ("toggle", "restart"),
    ("presets", "microphones", "transcript", "export"),
    ("source_line", "reading_mode", "larger", "smaller", "more_lines", "fewer_lines", "click_through"),
    ("look", "settings", "engine", "about"),
    ("hide", "quit"),
)


def stays_on_top() -> bool:
    """Whether a window may put itself above others and choose its place here: on Wayland it may not."""
    return not QGuiApplication.platformName().startswith("wayland")


class SubtitleWindow(Frame):
    """Asks by `toggle` (start or stop), `restart` and `leave`; closing the window is only `leave`, too. The `open_…`
    signals ask for what others show. `remember` carries the `WindowSettings` whenever the person has changed something.
    """

    toggle = Signal()
    restart = Signal()
    leave = Signal()
    open_presets = Signal()
    open_microphones = Signal()
    open_transcript = Signal()
    open_export = Signal()
    open_settings = Signal()
    open_look = Signal()
    open_engine = Signal()
    open_about = Signal()
    remember = Signal(object)

    def __init__(
        self, subtitles: Subtitles, title: str, look: Look | None = None, settings: WindowSettings | None = None
    ) -> None:
        super().__init__()
        self.settings = settings or WindowSettings()
        self._look = look or look_of(self.settings)
        self._status = Status()
        self._seen: tuple[Status, bool] | None = None
        self._click_through = False
        self.setWindowTitle(title)
        self.setWindowIcon(program_icon())
        self.setWindowFlags(self._flags())
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.actions_ = WindowActions(self, self._look)
        self.view = SubtitleView(subtitles, self._look)
        self.controls = ControlBar(self.actions_, self._look)
        self.bar = StateBar(self._look, self.controls)
        self.controls.hide()
        self._hide_controls = QTimer(self)
        self._hide_controls.setSingleShot(True)
        self._hide_controls.setInterval(HIDE_MS)
        self._hide_controls.timeout.connect(self._conceal)
        self._arrange()
        self.bar.button.setFocus()  # so that the window does not look for something to focus when it comes up
        self._menu = self._make_menu()
        self._connect()
        self.tray = Tray(self.actions_, self) if Tray.possible() else None
        if self.tray is not None:
            self.tray.wanted.connect(self.raise_up)
        self.apply(self.settings, look)
        self.place(self.settings.geometry)
        self.moved.connect(self._remember_place)

    # ------------------------------------------------------------ what others tell it

    def show_status(self, status: Status) -> None:
        """Show what the program is doing. A heartbeat that changes nothing to be seen costs nothing."""
        self._status = status
        lag_s = round(status.lag_s, 1) if status.lag_s >= BEHIND_S else 0.0
        seen = (replace(status, audio_s=0.0, lag_s=lag_s), self._click_through)
        if seen == self._seen:
            return
        self._seen = seen
        if self._click_through:
            keys = self.actions_["click_through"].shortcut().toString()
            notice = fill(translate("Window", "Clicks go through; {keys} ends that."), keys=keys)
            status = replace(status, notices=(notice, *status.notices))
        self.bar.show_status(status)
        self.view.set_speech(status.phase is Phase.LISTENING and status.speech)
        self.actions_.set_running(self.bar.running)
        self.actions_["toggle"].setEnabled(self.bar.button.isEnabled() and not status.can_restart)
        self.actions_["restart"].setEnabled(status.can_restart)
        if status.phase is not Phase.LISTENING:
            self.bar.meter.show_level(0.0)
        if self.tray is not None:
            self.tray.say(state_line(status))

    def show_level(self, peak: float) -> None:
        """Peak of the sound in [0, 1]."""
        self.bar.meter.show_level(peak)

    def apply(self, settings: WindowSettings, look: Look | None = None) -> None:
        """Take these settings from now on (without their place); `look` instead of the one they ask for."""
        before, self.settings = self.settings, settings
        self._look = look or look_of(settings)
        for part in (self.actions_, self.view, self.controls, self.bar):
            part.set_look(self._look)
        self.view.set_linger(settings.linger_s if settings.fade else None)
        self.actions_.set_shortcuts(settings.shortcuts)
        self.actions_["source_line"].setChecked(settings.source_line)
        self.actions_["reading_mode"].setChecked(settings.reading_mode)
        self.retranslate()
        if settings.on_top != before.on_top and self.windowHandle() is not None:
            self.windowHandle().setFlag(Qt.WindowType.WindowStaysOnTopHint, settings.on_top)
        if _shape(settings) != _shape(before):
            self._fit()
        self.update()

    def raise_up(self) -> None:
        """Bring it to the front, where it can be clicked again."""
        self.set_click_through(False)
        self.showNormal() if self.isMinimized() else self.show()
        self.raise_()
        self.activateWindow()

    def set_click_through(self, on: bool) -> None:
        """Whether clicks reach what lies behind. Never remembered: a window that starts so could not be used."""
        self._click_through = on
        self.actions_["click_through"].setChecked(on)
        if self.windowHandle() is not None:
            self.windowHandle().setFlag(Qt.WindowType.WindowTransparentForInput, on)
        if on:
            self._conceal(at_once=True)
        self.show_status(self._status)

    @property
    def click_through(self) -> bool:
        """Whether clicks reach what lies behind."""
        return self._click_through

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.view.setAccessibleName(translate("Window", "Subtitles"))
        self.actions_.retranslate()
        self.controls.retranslate()
        self.bar.set_shortcuts(*(self.actions_[wish].shortcut().toString() for wish in ("toggle", "restart")))
        if self.tray is not None:
            self.tray.retranslate()

    def detach(self) -> None:
        """Stop listening to the models, before the window is thrown away."""
        self.let_go()  # first: the place that is remembered now comes back as settings
        self.view.detach()
        self._hide_controls.stop()
        if self.tray is not None:
            self.tray.close()

    # ------------------------------------------------------------ parts

    def _flags(self) -> Qt.WindowType:
        flags = Qt.WindowType.Window | Qt.WindowType.FramelessWindowHint
        return flags | Qt.WindowType.WindowStaysOnTopHint if self.settings.on_top else flags

    def _arrange(self) -> None:
        margin = self._look.margin
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(margin, margin // 2, margin, 4)
        column.setSpacing(6)
        column.addWidget(self.view, 1)
        bottom = QHBoxLayout()
        bottom.setSpacing(6)
        bottom.addWidget(self.bar, 1)
        bottom.addWidget(QSizeGrip(self), 0, Qt.AlignmentFlag.AlignBottom | Qt.AlignmentFlag.AlignRight)
        column.addLayout(bottom)

    def _make_menu(self) -> QMenu:
        menu = QMenu(self)
        for group in MENU:
            menu.addActions([self.actions_[wish] for wish in group])
            menu.addSeparator()
        menu.aboutToHide.connect(self._hide_controls.start)
        return menu

    def _connect(self) -> None:
        self.bar.toggle.connect(self.toggle)
        self.bar.restart.connect(self.restart)
        opening = ("presets", "microphones", "transcript", "export", "settings", "look", "engine", "about")
        for wish, signal in {
            "toggle": self.toggle,
            "restart": self.restart,
            "quit": self.leave,
            **{wish: getattr(self, f"open_{wish}") for wish in opening},
        }.items():
            self.actions_[wish].triggered.connect(lambda _=False, signal=signal: signal.emit())
        change = self._change
        for wish, do in {
            "source_line": lambda on: change(source_line=on),
            "reading_mode": lambda on: change(reading_mode=on),
            "larger": lambda _: change(font_pt=self.settings.font_pt + 2),
            "smaller": lambda _: change(font_pt=self.settings.font_pt - 2),
            "more_lines": lambda _: change(lines=self.settings.lines + 1),
            "fewer_lines": lambda _: change(lines=self.settings.lines - 1),
            "click_through": self.set_click_through,
            "menu": lambda _: self._menu.popup(self.mapToGlobal(self.rect().center())),
            "hide": lambda _: self.showMinimized(),
        }.items():
            self.actions_[wish].triggered.connect(do)
        self.view.grew.connect(self._fit)
        self._listen(self._application.focusChanged, self._focus_moved)
        self._listen(QGuiApplication.styleHints().colorSchemeChanged, self._scheme_changed)

    def _change(self, **values: Any) -> None:
        """The person changed the look from here."""
        settings = self.settings.model_copy(deep=True)
        for name, value in values.items():
            setattr(settings, name, value)
        if settings != self.settings:
            self.apply(settings)
            self.remember.emit(settings)

    def _scheme_changed(self, *_: object) -> None:
        if self.settings.theme == "system":
            self.apply(self.settings)

    def _remember_place(self, geometry: Geometry) -> None:
        if geometry != self.settings.geometry:
            self.settings = self.settings.model_copy(update={"geometry": geometry})
            self.remember.emit(self.settings)

    def _fit(self) -> None:
        """Give the window the height that its number of lines needs."""
        self._column.activate()
        self.fit_height(self.sizeHint().height())

    # ------------------------------------------------------------ the controls come and go

    def _reveal(self) -> None:
        self._hide_controls.stop()
        self.controls.show()

    def _conceal(self, at_once: bool = False) -> None:
        """Hide the controls, unless somebody is at them."""
        focus = QApplication.focusWidget()
        busy = self.underMouse() or self._menu.isVisible() or (focus is not None and self.controls.isAncestorOf(focus))
        if at_once or not busy:
            self.controls.hide()

    def _focus_moved(self, old: QWidget | None, new: QWidget | None) -> None:
        if new is not None and self.controls.isAncestorOf(new):
            self._reveal()
        elif old is not None and self.controls.isAncestorOf(old):
            self._hide_controls.start()

    def focusNextPrevChild(self, forward: bool) -> bool:
        """The first step with the Tab key makes the controls visible, so that it can reach them."""
        self._reveal()
        self._hide_controls.start()
        return super().focusNextPrevChild(forward)

    # ------------------------------------------------------------ Qt's events

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        path = QPainterPath()
        path.addRoundedRect(QRectF(self.rect()), self._look.radius, self._look.radius)
        painter.fillPath(path, self._look.background)
        if self._look.bar_background != self._look.background:
            painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_Source)
            painter.setClipRect(0, self.bar.y() - 3, self.width(), self.height())
            painter.fillPath(path, self._look.bar_background)
        painter.end()

    def enterEvent(self, event: QEnterEvent) -> None:
        self._reveal()
        super().enterEvent(event)

    def leaveEvent(self, event: QEvent) -> None:
        self._hide_controls.start()
        super().leaveEvent(event)

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._menu.popup(event.globalPos())

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        """The session is finished first; whoever hears `leave` hides the window when all is done."""
        event.ignore()
        self.leave.emit()


def _shape(settings: WindowSettings) -> tuple[object, ...]:
    """What the height depends on."""
    return settings.lines, settings.font, settings.font_pt, settings.bold, settings.source_line
