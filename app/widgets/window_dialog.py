"""Appearance, shortcuts and the page for browsers, in one dialog beside the window."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QScrollArea,
    QSpinBox,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from app.i18n import translate
from app.widgets.appearance import AppearancePage
from app.widgets.sentences import say
from app.widgets.shortcut_editor import ShortcutEditor
from app.window_settings import WindowSettings


class BrowserPage(QWidget):
    """Switches the page for OBS and shows its address. `changed` carries (enabled, port)."""

    changed = Signal(bool, int)

    def __init__(self) -> None:
        super().__init__()
        self.enabled, self.port = QCheckBox(), QSpinBox()
        self.address, self.copy, self.problem, self.about = QLineEdit(), QPushButton(), QLabel(), QLabel()
        self.port.setRange(1024, 65_535)
        self.address.setReadOnly(True)
        for label in (self.problem, self.about):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        self._port_label, self._address_label = QLabel(), QLabel()
        self._port_label.setBuddy(self.port)
        self._address_label.setBuddy(self.address)
        form = QFormLayout()
        form.addRow(self.enabled)
        form.addRow(self._port_label, self.port)
        form.addRow(self._address_label, self.address)
        form.addRow("", self.copy)
        column = QVBoxLayout(self)
        column.addWidget(self.about)
        column.addLayout(form)
        column.addWidget(self.problem)
        column.addStretch(1)
        self.enabled.toggled.connect(self._tell)
        self.port.editingFinished.connect(self._tell)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.address.text()))
        self.retranslate()

    def show_page(self, settings: WindowSettings, address: str, problem: str) -> None:
        """What is in use, and what is wrong with it."""
        with QSignalBlocker(self.enabled), QSignalBlocker(self.port):
            self.enabled.setChecked(settings.page.enabled)
            self.port.setValue(settings.page.port)
        self.address.setText(address)
        self.address.setCursorPosition(0)
        self.copy.setEnabled(bool(address))
        self.problem.setText(f"⚠ {say(problem)}" if problem else "")

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.about.setText(
            translate(
                "Browser",
                "A page with the subtitles for OBS's browser source, or any browser on this machine."
                " Nobody else can reach it.",
            )
        )
        self.enabled.setText(translate("Browser", "&Serve the page"))
        for widget, label, text in (
            (self.port, self._port_label, translate("Browser", "&Port")),
            (self.address, self._address_label, translate("Browser", "&Address")),
        ):
            label.setText(text)
            widget.setAccessibleName(text.replace("&", ""))
        self.copy.setText(translate("Browser", "&Copy the address"))

    def _tell(self) -> None:
        self.changed.emit(self.enabled.isChecked(), self.port.value())


class WindowDialog(QDialog):
    """`changed` carries new `WindowSettings`; `page_changed` (enabled, port)."""

    changed = Signal(object)
    page_changed = Signal(bool, int)

    def __init__(self, settings: WindowSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.look, self.keys, self.browser = AppearancePage(settings), ShortcutEditor(), BrowserPage()
        self.tabs = QTabWidget()
        area = QScrollArea()
        area.setWidget(self.look)
        area.setWidgetResizable(True)
        for page in (area, self.keys, self.browser):
            self.tabs.addTab(page, "")
        self.buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.addWidget(self.tabs, 1)
        column.addWidget(self.buttons)
        self.look.changed.connect(self.changed)
        self.keys.changed.connect(self._keys_changed)
        self.browser.changed.connect(self.page_changed)
        self.resize(560, 680)
        self.retranslate()
        self.show_settings(settings, "", "")

    def show_settings(self, settings: WindowSettings, address: str, problem: str) -> None:
        """Show what is in use; `address` and `problem` are those of the page for browsers."""
        self._settings = settings
        self.look.show_settings(settings)
        self.keys.show_shortcuts(settings.shortcuts)
        self.browser.show_page(settings, address, problem)

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.setWindowTitle(translate("Browser", "Appearance and shortcuts"))
        titles = (
            translate("Browser", "Appearance"),
            translate("Browser", "Shortcuts"),
            translate("Browser", "OBS and browsers"),
        )
        for number, title in enumerate(titles):
            self.tabs.setTabText(number, title)
        self.browser.retranslate()

    def _keys_changed(self, shortcuts: dict[str, str]) -> None:
        self.changed.emit(self._settings.model_copy(update={"shortcuts": dict(shortcuts)}))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)
