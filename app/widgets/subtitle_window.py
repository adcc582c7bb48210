"""The subtitle overlay: frameless, above other windows where the platform allows, moved and resized by hand."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QContextMenuEvent,
    QGuiApplication,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QMenu, QSizeGrip, QVBoxLayout, QWidget

from app.status import Phase, Status
from app.subtitles import Subtitles
from app.widgets.look import Look
from app.widgets.state_bar import StateBar
from app.widgets.subtitle_view import SubtitleView

SHARE_OF_SCREEN = 0.6
MAX_WIDTH = 1200


class SubtitleWindow(QWidget):
    """Asks by `toggle` (start or stop), `restart` and `leave`; closing the window is only `leave`, too."""

    toggle = Signal()
    restart = Signal()
    leave = Signal()

    def __init__(self, subtitles: Subtitles, title: str, look: Look | None = None) -> None:
        super().__init__()
        self._look = look or Look()
        self._grabbed: QPoint | None = None
        self.setWindowTitle(title)
        self.setWindowFlags(
            Qt.WindowType.Window | Qt.WindowType.FramelessWindowHint | Qt.WindowType.WindowStaysOnTopHint
        )
        self.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
        self.view = SubtitleView(subtitles, self._look)
        self.bar = StateBar(self._look)
        self.bar.toggle.connect(self.toggle)
        self.bar.restart.connect(self.restart)
        self._arrange()
        self._menu = self._make_menu()
        self._place()

    def show_status(self, status: Status) -> None:
        """Show what the program is doing."""
        self.bar.show_status(status)
        self._toggle_action.setText(self.bar.button.text())
        self._toggle_action.setEnabled(self.bar.button.isEnabled() and not status.can_restart)
        self._restart_action.setEnabled(status.can_restart)
        if status.phase is not Phase.LISTENING:
            self.bar.meter.show_level(0.0)

    def show_level(self, peak: float) -> None:
        """Peak of the sound in [0, 1]."""
        self.bar.meter.show_level(peak)

    def detach(self) -> None:
        """Stop listening to the models, before the window is thrown away."""
        self.view.detach()

    # ------------------------------------------------------------ parts

    def _arrange(self) -> None:
        margin = self._look.margin
        column = QVBoxLayout(self)
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
        self._toggle_action = self._action("Start", "Space", self.toggle.emit)
        self._restart_action = self._action("Restart the engine", "Ctrl+R", self.restart.emit)
        quit_action = self._action("Quit", "Ctrl+Q", self.leave.emit)
        menu.addActions([self._toggle_action, self._restart_action])
        menu.addSeparator()
        menu.addAction(quit_action)
        return menu

    def _action(self, text: str, keys: str, do: object) -> QAction:
        action = QAction(text, self)
        action.setShortcut(QKeySequence(keys))
        action.triggered.connect(do)
        self.addAction(action)
        return action

    def _place(self) -> None:
        """At the bottom of the screen, in the middle; on Wayland the compositor decides."""
        screen = QGuiApplication.primaryScreen().availableGeometry()
        width = min(MAX_WIDTH, round(screen.width() * SHARE_OF_SCREEN))
        self.resize(width, self.sizeHint().height())
        self.move(screen.center().x() - width // 2, screen.bottom() - self.height() - 40)

    # ------------------------------------------------------------ Qt's events

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._look.background)
        painter.drawRoundedRect(QRectF(self.rect()), self._look.radius, self._look.radius)
        painter.end()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            handle = self.windowHandle()
            if handle is None or not handle.startSystemMove():  # no window manager that could do it
                self._grabbed = event.globalPosition().toPoint() - self.pos()
            event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grabbed is not None:
            self.move(event.globalPosition().toPoint() - self._grabbed)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grabbed = None

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self._menu.popup(event.globalPos())

    def closeEvent(self, event: QCloseEvent) -> None:
        """The session is finished first; whoever hears `leave` hides the window when all is done."""
        event.ignore()
        self.leave.emit()
