"""The buttons that appear when the mouse is over the window or the keyboard comes to them."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from app.i18n import translate
from app.widgets.look import Look
from app.widgets.window_actions import WindowActions

SHOWN = ("presets", "microphones", "transcript", "export", "look", "settings", "engine", "menu")
SIDE = 30  # pixels of a button
ICON = 18


class ControlBar(QWidget):
    """One button for each of the actions in `SHOWN`; in a narrow window those that fit, the menu always."""

    def __init__(self, actions: WindowActions, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.buttons = {wish: self._button(actions, wish) for wish in SHOWN}
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.set_look(look)
        self.retranslate()

    def set_look(self, look: Look) -> None:
        """Colours of the look."""
        text, accent = look.stable, look.accent.name()
        wash = f"rgba({text.red()}, {text.green()}, {text.blue()}, 45)"
        self.setStyleSheet(
            "QToolButton { background: transparent; border: 1px solid transparent; border-radius: 6px; }"
            f"QToolButton:hover, QToolButton:checked {{ background: {wash}; }}"
            f"QToolButton:focus {{ border: 2px solid {accent}; }}"
        )

    def retranslate(self) -> None:
        """Names in the interface's language."""
        self.setAccessibleName(translate("ControlBar", "Controls"))
        for button in self.buttons.values():
            action = button.defaultAction()
            button.setAccessibleName(action.text().removesuffix("…"))
            button.setAccessibleDescription(action.toolTip())

    def sizeHint(self) -> QSize:
        return QSize(SIDE * len(self.buttons), SIDE)

    def minimumSizeHint(self) -> QSize:
        return QSize(SIDE, SIDE)

    def resizeEvent(self, event: QResizeEvent) -> None:
        room = max(1, self.width() // SIDE)
        *others, menu = self.buttons.values()
        for number, button in enumerate(others):
            button.setVisible(number < room - 1)
            button.setGeometry(number * SIDE, 0, SIDE, SIDE)
        menu.setGeometry(min(room - 1, len(others)) * SIDE, 0, SIDE, SIDE)
        super().resizeEvent(event)

    def _button(self, actions: WindowActions, wish: str) -> QToolButton:
        button = QToolButton(self)
        button.setDefaultAction(actions[wish])
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        button.setIconSize(QSize(ICON, ICON))
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button
