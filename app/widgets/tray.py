"""The icon beside the clock, where the platform has such a place: the way back when clicks go through the window."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QMenu, QSystemTrayIcon, QWidget

from app.i18n import translate
from app.widgets.icons import program_icon
from app.widgets.window_actions import WindowActions

OFFERED = ("toggle", "restart", None, "click_through", "transcript", "settings", None, "quit")


class Tray(QObject):
    """Shows itself when made. `wanted`: the icon was clicked, the window is to come to the front."""

    wanted = Signal()

    def __init__(self, actions: WindowActions, window: QWidget) -> None:
        super().__init__(window)
        self.menu = QMenu(window)
        self._show = self.menu.addAction("")
        self._show.triggered.connect(self.wanted)
        for wish in OFFERED:
            if wish is None:
                self.menu.addSeparator()
            else:
                self.menu.addAction(actions[wish])
        self.icon = QSystemTrayIcon(program_icon(), self)
        self.icon.setContextMenu(self.menu)
        self.icon.activated.connect(self._activated)
        self.retranslate()
        self.icon.show()

    @staticmethod
    def possible() -> bool:
        """Whether the platform has a place for it."""
        return QSystemTrayIcon.isSystemTrayAvailable()

    def say(self, text: str) -> None:
        """What the program is doing, for who points at the icon."""
        self.icon.setToolTip(f"Surtitle: {text}" if text else "Surtitle")

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self._show.setText(translate("Tray", "Show the window"))

    def close(self) -> None:
        """Take the icon away."""
        self.icon.hide()

    def _activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason in (QSystemTrayIcon.ActivationReason.Trigger, QSystemTrayIcon.ActivationReason.DoubleClick):
            self.wanted.emit()
