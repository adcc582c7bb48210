"""Everything a person can ask of the window, each with a name and a shortcut that can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from PySide6.QtCore import QObject
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.i18n import translate
from app.widgets.icons import icon
from app.widgets.look import Look


@dataclass(frozen=True, slots=True)
class Wish:
    """`keys` is the shortcut it has until somebody changes it; `icon` a drawing, or ""."""

    id: str
    keys: str
    icon: str = ""
    checkable: bool = False


WISHES = (
    Wish("toggle", "Space", "start"),
    Wish("restart", "Ctrl+R", "restart"),
    Wish("presets", "Ctrl+P", "presets"),
    Wish("microphones", "Ctrl+M", "microphones"),
    Wish("transcript", "Ctrl+T", "transcript"),
    Wish("export", "Ctrl+E", "export"),
    Wish("settings", "Ctrl+,", "settings"),
    Wish("look", "Ctrl+L", "look"),
    Wish("engine", "Ctrl+I", "engine"),
    Wish("source_line", "Ctrl+O", checkable=True),
    Wish("reading_mode", "Ctrl+D", checkable=True),
    Wish("larger", "Ctrl++"),
    Wish("smaller", "Ctrl+-"),
    Wish("more_lines", "Ctrl+Up"),
    Wish("fewer_lines", "Ctrl+Down"),
    Wish("click_through", "Ctrl+Shift+X", checkable=True),
    Wish("menu", "F10", "more"),
    Wish("about", "F1"),
    Wish("hide", "Ctrl+H"),
    Wish("quit", "Ctrl+Q"),
)
IDS = tuple(wish.id for wish in WISHES)
DEFAULT_KEYS = {wish.id: wish.keys for wish in WISHES}


def wish_name(wish: str) -> str:
    """What it is called, in the interface's language."""
    match wish:
        case "toggle":
            return translate("Actions", "Start or stop")
        case "restart":
            return translate("Actions", "Restart the engine")
        case "presets":
            return translate("Actions", "Presets and languages…")
        case "microphones":
            return translate("Actions", "Microphone…")
        case "transcript":
            return translate("Actions", "Transcript…")
        case "export":
            return translate("Actions", "Export…")
        case "settings":
            return translate("Actions", "Settings…")
        case "look":
            return translate("Actions", "Appearance and shortcuts…")
        case "engine":
            return translate("Actions", "Engine and log…")
        case "source_line":
            return translate("Actions", "Show what was heard")
        case "reading_mode":
            return translate("Actions", "Reading mode: stable text only")
        case "larger":
            return translate("Actions", "Larger text")
        case "smaller":
            return translate("Actions", "Smaller text")
        case "more_lines":
            return translate("Actions", "More lines")
        case "fewer_lines":
            return translate("Actions", "Fewer lines")
        case "click_through":
            return translate("Actions", "Let clicks through the window")
        case "menu":
            return translate("Actions", "Menu")
        case "about":
            return translate("Actions", "About Surtitle…")
        case "hide":
            return translate("Actions", "Minimise")
        case "quit":
            return translate("Actions", "Quit")
    return wish


def keys_of(changed: Mapping[str, str]) -> dict[str, str]:
    """Every action's shortcut. One that cannot be read is as good as none changed; of two that are the same, the
    changed one counts.
    """
    keys = dict(DEFAULT_KEYS)
    for wish, text in changed.items():
        if wish in keys and (not text or _readable(text)):
            keys[wish] = text
    taken: dict[str, str] = {}
    for wish in sorted(keys, key=lambda wish: (wish not in changed, IDS.index(wish))):
        sequence = QKeySequence(keys[wish]).toString()
        if sequence and sequence in taken:
            keys[wish] = ""
        elif sequence:
            taken[sequence] = wish
    return keys


def _readable(text: str) -> bool:
    return bool(QKeySequence(text).toString())


class WindowActions(QObject):
    """The actions of one window, by their id. `Wish` says which there are."""

    def __init__(self, window: QWidget, look: Look) -> None:
        super().__init__(window)
        self._actions: dict[str, QAction] = {}
        self._running = False
        for wish in WISHES:
            action = QAction(window)
            action.setObjectName(wish.id)
            action.setCheckable(wish.checkable)
            action.setShortcutVisibleInContextMenu(True)
            self._actions[wish.id] = action
            window.addAction(action)
        self.set_look(look)
        self.set_shortcuts({})
        self.retranslate()

    def __getitem__(self, wish: str) -> QAction:
        return self._actions[wish]

    def set_look(self, look: Look) -> None:
        """Icons in the colours of the look."""
        for wish in WISHES:
            if wish.icon:
                self._actions[wish.id].setIcon(icon(wish.icon, look.stable, look.quiet))
        self._icons = {name: icon(name, look.stable, look.quiet) for name in ("start", "stop")}
        self.set_running(self._running)

    def set_shortcuts(self, changed: Mapping[str, str]) -> None:
        """`changed`: the settings' shortcuts."""
        for wish, keys in keys_of(changed).items():
            self._actions[wish].setShortcut(QKeySequence(keys))
        self.retranslate()

    def set_running(self, running: bool) -> None:
        """Whether the first action is to start or to stop."""
        self._running = running
        toggle = self._actions["toggle"]
        toggle.setIcon(self._icons["stop" if running else "start"])
        toggle.setText(translate("Actions", "Stop") if running else translate("Actions", "Start"))
        self._explain("toggle")

    def retranslate(self) -> None:
        """Take the names from the interface's language."""
        for wish, action in self._actions.items():
            action.setText(wish_name(wish))
            self._explain(wish)
        self.set_running(self._running)

    def _explain(self, wish: str) -> None:
        action = self._actions[wish]
        keys = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        name = action.text().removesuffix("…")
        action.setToolTip(f"{name} ({keys})" if keys else name)
