"""The settings that have no dialog of their own: own models, licences, and where everything lies."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n import fill, translate
from app.settings import PATH_LENGTH, Settings
from app.widgets.preset_card import plain_label
from app.widgets.sentences import say

RECOGNISER, TRANSLATOR = "recogniser.model", "translator.model"


class SettingsDialog(QDialog):
    """`changed` carries a dict of settings to change; `reset`: everything is to be as on the first day.

    `open_presets`, `open_microphones` and `open_look` ask for the dialogs that hold the other settings.
    """

    changed = Signal(object)
    reset = Signal()
    open_presets = Signal()
    open_microphones = Signal()
    open_look = Signal()

    def __init__(self, settings: Settings, sessions: Path, file: Path | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings, self._sessions, self._file = settings, sessions, file
        self.groups = {name: QGroupBox() for name in ("use", "models", "licences", "places")}
        self.presets, self.microphone, self.look = QPushButton(), QPushButton(), QPushButton()
        self.paths = {RECOGNISER: QLineEdit(), TRANSLATOR: QLineEdit()}
        self.browse = {name: QPushButton() for name in self.paths}
        self._labels = {name: QLabel() for name in self.paths}
        self.model_note, self.model_problem = plain_label(quiet=True), plain_label()
        self.licences, self.withdraw = plain_label(), QPushButton()
        self.places, self.open_folder, self.restore = plain_label(), QPushButton(), QPushButton()
        self.problem = plain_label()
        self._arrange()
        self._connect()
        self.retranslate()
        self.show_settings(settings)
        self.show_problem("")

    # ------------------------------------------------------------ what it is told

    def show_settings(self, settings: Settings) -> None:
        """What is in use."""
        self._settings = settings
        for name, field in self.paths.items():
            if field.text() != settings.models.get(name, ""):
                field.setText(settings.models.get(name, ""))
        none = translate("Settings", "None has been accepted yet.")
        self.licences.setText(", ".join(settings.licences) if settings.licences else none)
        self.withdraw.setEnabled(bool(settings.licences))
        self._check_paths()

    def show_problem(self, sentence: str) -> None:
        """What keeps the settings from being saved, or ""."""
        self.problem.setText(f"⚠ {say(sentence)}" if sentence else "")
        self.problem.setVisible(bool(sentence))

    # ------------------------------------------------------------ parts

    def _arrange(self) -> None:
        use = QHBoxLayout(self.groups["use"])
        for button in (self.presets, self.microphone, self.look):
            button.setAutoDefault(False)
            use.addWidget(button)
        models = QFormLayout(self.groups["models"])
        models.addRow(self.model_note)
        for name, field in self.paths.items():
            field.setMaxLength(PATH_LENGTH)
            field.setClearButtonEnabled(True)
            row = QHBoxLayout()
            row.addWidget(field, 1)
            self.browse[name].setAutoDefault(False)
            row.addWidget(self.browse[name])
            self._labels[name].setBuddy(field)
            models.addRow(self._labels[name], row)
        models.addRow(self.model_problem)
        licences = QHBoxLayout(self.groups["licences"])
        licences.addWidget(self.licences, 1)
        licences.addWidget(self.withdraw)
        places = QVBoxLayout(self.groups["places"])
        places.addWidget(self.places)
        row = QHBoxLayout()
        for button in (self.open_folder, self.restore):
            row.addWidget(button)
        row.addStretch(1)
        places.addLayout(row)
        for button in (self.withdraw, self.open_folder, self.restore):
            button.setAutoDefault(False)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        for group in self.groups.values():
            column.addWidget(group)
        column.addWidget(self.problem)
        column.addStretch(1)
        column.addWidget(buttons)
        self.resize(580, 480)

    def _connect(self) -> None:
        self.presets.clicked.connect(self.open_presets)
        self.microphone.clicked.connect(self.open_microphones)
        self.look.clicked.connect(self.open_look)
        for name, field in self.paths.items():
            field.editingFinished.connect(self._paths_edited)
            self.browse[name].clicked.connect(lambda _=False, name=name: self._browse(name))
        self.withdraw.clicked.connect(lambda: self.changed.emit({"licences": ()}))
        self.open_folder.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._sessions))))
        self.restore.clicked.connect(self._confirm_reset)

    def _paths_edited(self) -> None:
        models = {name: field.text().strip() for name, field in self.paths.items() if field.text().strip()}
        kept = {name: path for name, path in self._settings.models.items() if name not in self.paths}
        if {**kept, **models} != self._settings.models:
            self.changed.emit({"models": {**kept, **models}})
        self._check_paths()

    def _check_paths(self) -> None:
        missing = [field.text() for field in self.paths.values() if field.text().strip() and not _exists(field.text())]
        text = fill(translate("Settings", "There is nothing at {path}."), path=missing[0]) if missing else ""
        self.model_problem.setText(f"⚠ {text}" if text else "")
        self.model_problem.setVisible(bool(text))

    def _browse(self, name: str) -> None:
        dialog = QFileDialog(self, self._labels[name].text().replace("&", ""), self.paths[name].text())
        if name == RECOGNISER:
            dialog.setFileMode(QFileDialog.FileMode.Directory)
        else:
            dialog.setNameFilter("GGUF (*.gguf)")

        def take(path: str) -> None:
            self.paths[name].setText(path)
            self._paths_edited()

        dialog.fileSelected.connect(take)
        dialog.open()

    def _confirm_reset(self) -> None:
        question = translate("Settings", "Put all settings back to how they were on the first day?")
        box = QMessageBox(QMessageBox.Icon.Question, self.windowTitle(), question, parent=self)
        box.setInformativeText(translate("Settings", "Recorded sessions stay."))
        sure = box.addButton(translate("Settings", "&Put back"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        sure.clicked.connect(self.reset)
        box.open()

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.setWindowTitle(translate("Settings", "Settings"))
        titles = {
            "use": translate("Settings", "What is used"),
            "models": translate("Settings", "Your own models"),
            "licences": translate("Settings", "Accepted licences"),
            "places": translate("Settings", "Where everything lies"),
        }
        for name, group in self.groups.items():
            group.setTitle(titles[name])
        self.presets.setText(translate("Settings", "&Preset and languages…"))
        self.microphone.setText(translate("Settings", "&Microphone…"))
        self.look.setText(translate("Settings", "&Appearance and shortcuts…"))
        self.model_note.setText(
            translate("Settings", "In place of the preset's models: a folder of a faster-whisper model, a GGUF file.")
        )
        labels = {
            RECOGNISER: translate("Settings", "&Recogniser"),
            TRANSLATOR: translate("Settings", "&Translator"),
        }
        for name, label in self._labels.items():
            plain = labels[name].replace("&", "")
            label.setText(labels[name])
            self.paths[name].setAccessibleName(plain)
            self.paths[name].setPlaceholderText(translate("Settings", "the preset's own"))
            self.browse[name].setText(translate("Settings", "Choose…"))
            self.browse[name].setAccessibleName(fill(translate("Settings", "Choose: {what}"), what=plain))
        self.withdraw.setText(translate("Settings", "&Withdraw"))
        self.withdraw.setToolTip(translate("Settings", "You are asked again before the next session"))
        nowhere = translate("Settings", "not saved in this run")
        lines = (
            fill(translate("Settings", "Sessions: {path}"), path=self._sessions),
            fill(translate("Settings", "Settings: {path}"), path=self._file or nowhere),
        )
        self.places.setText("\n".join(lines))
        self.open_folder.setText(translate("Settings", "&Open the sessions' folder"))
        self.restore.setText(translate("Settings", "Put all &back…"))
        self.show_settings(self._settings)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)


def _exists(text: str) -> bool:
    try:
        return Path(text.strip()).expanduser().exists()
    except (OSError, ValueError, RuntimeError):
        return False
