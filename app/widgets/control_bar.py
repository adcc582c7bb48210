"""The buttons that appear when the mouse is over the window or the keyboard comes to them."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QToolButton, QWidget

from app.i18n import translate
from app.widgets.look import Look
from app.widgets.window_actions import WindowActions

SHOWN = ("presets", "microphones", "transcript", "export", "look", "settings", "engine", "menu")
ICON = QSize(18, 18)


class ControlBar(QWidget):
    """One button for each of the actions in `SHOWN`."""

    def __init__(self, actions: WindowActions, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        self.buttons = {wish: self._button(actions, wish) for wish in SHOWN}
        for button in self.buttons.values():
            row.addWidget(button)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self.set_look(look)
        self.retranslate()

    def set_look(self, look: Look) -> None:
        """Colours of the look."""
        text, accent = look.stable, look.accent.name()
        wash = f"rgba({text.red()}, {text.green()}, {text.blue()}, 45)"
        self.setStyleSheet(
            "QToolButton { background: transparent; border: 1px solid transparent; border-radius: 6px; padding: 3px; }"
            f"QToolButton:hover, QToolButton:checked {{ background: {wash}; }}"
            f"QToolButton:focus {{ border: 2px solid {accent}; padding: 2px; }}"
        )

    def retranslate(self) -> None:
        """Names in the interface's language."""
        self.setAccessibleName(translate("ControlBar", "Controls"))
        for button in self.buttons.values():
            action = button.defaultAction()
            button.setAccessibleName(action.text().removesuffix("…"))
            button.setAccessibleDescription(action.toolTip())

    def _button(self, actions: WindowActions, wish: str) -> QToolButton:
        button = QToolButton()
        button.setDefaultAction(actions[wish])
        button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        button.setIconSize(ICON)
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        return button
