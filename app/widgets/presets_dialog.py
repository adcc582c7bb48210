"""The preset dialog: what to use, from which language to which, and what the talk is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QEvent, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QButtonGroup,
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.downloads import Download
from app.i18n import fill, translate
from app.preset_cards import PresetCard
from app.settings import CONTEXT_LENGTH
from app.widgets.download_rows import DownloadRows
from app.widgets.preset_card import CardView, plain_label
from app.widgets.preset_texts import LICENCE_PAGES, language_name
from app.widgets.sentences import say

_ADDRESS = re.compile(r"wss?://[^\s/]+")


@dataclass(frozen=True, slots=True)
class PresetChoice:
    """What the person has chosen. `start`: a session is to begin with it now."""

    preset: str
    source_lang: str
    target_lang: str
    context: str
    licences: tuple[str, ...]
    start: bool
    server: str = ""
    token_file: str = ""


class PresetsDialog(QDialog):
    """`chosen` carries a `PresetChoice`; `download` an action: "pause", "resume" or "cancel"."""

    chosen = Signal(object)
    download = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.cards: list[CardView] = []
        self._group = QButtonGroup(self)
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        self.problem = plain_label()
        self.source, self.target = QComboBox(), QComboBox()
        self.context = QPlainTextEdit()
        self.context.setTabChangesFocus(True)
        self.context.setFixedHeight(56)
        self.server, self.token_file = QLineEdit(), QLineEdit()
        self.server.textChanged.connect(self._enable)
        self.downloads = DownloadRows()
        self.downloads.asked.connect(self.download)
        self._licences = QVBoxLayout()
        self._boxes: dict[str, QCheckBox] = {}
        self.start, self.use = QPushButton(), QPushButton()
        self.hint = plain_label(quiet=True)
        self._fields = (self.source, self.target, self.server, self.token_file, self.context)
        self._labels = [QLabel() for _ in self._fields]
        self._arrange()
        self.source.currentIndexChanged.connect(lambda _: self._fill_targets())
        self.start.clicked.connect(lambda: self._choose(start=True))
        self.use.clicked.connect(lambda: self._choose(start=False))
        self.retranslate()

    # ------------------------------------------------------------ what it is told

    def show_cards(self, cards: Sequence[PresetCard], problems: Sequence[str] = (), asking: bool = False) -> None:
        """The presets of this machine; `asking`: the machine has not said yet what it has. What is chosen stays."""
        before = self.card.preset.id if self.card else ""
        for view in self.cards:
            self._group.removeButton(view.radio)
            view.hide()
            view.deleteLater()
        self.cards = [CardView(card) for card in cards]
        for number, view in enumerate(self.cards):
            self._list.insertWidget(number, view)
            self._group.addButton(view.radio)
            view.chosen.connect(self._card_changed)
        waiting = translate("Presets", "Looking at what this machine has…") if asking else ""
        self.problem.setText("\n".join(filter(None, [waiting, *map(say, problems)])))
        self.problem.setVisible(bool(self.problem.text()))
        self._select(before)

    def show_choice(
        self, preset: str, source_lang: str, target_lang: str, context: str, server: str = "", token_file: str = ""
    ) -> None:
        """What is in use."""
        self.server.setText(server)
        self.token_file.setText(token_file)
        self._select(preset)
        self._set(self.source, source_lang)
        self._set(self.target, target_lang)
        self.context.setPlainText(context)

    def show_downloads(self, rows: Sequence[Download]) -> None:
        """Downloads that the engine has told of."""
        self.downloads.show_rows(rows)

    def show_running(self, running: bool) -> None:
        """Whether a session runs: it then goes on with what is chosen here."""
        self.start.setText(translate("Presets", "&Restart with this") if running else translate("Presets", "&Start"))

    @property
    def card(self) -> PresetCard | None:
        """The chosen preset."""
        return next((view.card for view in self.cards if view.radio.isChecked()), None)

    @property
    def boxes(self) -> dict[str, QCheckBox]:
        """A box for each licence of the chosen preset that was not accepted yet."""
        return self._boxes

    # ------------------------------------------------------------ parts

    def _arrange(self) -> None:
        inside = QWidget()
        self._list.addStretch(1)
        inside.setLayout(self._list)
        self.area = QScrollArea()
        self.area.setWidget(inside)
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.area.setFrameShape(QScrollArea.Shape.NoFrame)
        self._form = form = QFormLayout()
        for label, field in zip(self._labels, self._fields, strict=True):
            label.setBuddy(field)
            form.addRow(label, field)
        buttons = QDialogButtonBox()
        buttons.addButton(self.start, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton(self.use, QDialogButtonBox.ButtonRole.ActionRole)
        self.cancel = buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        self.cancel.clicked.connect(self.reject)
        self.start.setDefault(True)
        row = QHBoxLayout()
        row.addWidget(self.hint, 1)
        row.addWidget(buttons)
        column = QVBoxLayout(self)
        column.addWidget(self.problem)
        column.addWidget(self.area, 1)
        column.addLayout(form)
        column.addWidget(self.downloads)
        column.addLayout(self._licences)
        column.addLayout(row)
        self.resize(660, 700)

    def _select(self, preset: str) -> None:
        usable = [view for view in self.cards if view.card.usable]
        wanted = next((view for view in usable if view.card.preset.id == preset), usable[0] if usable else None)
        if wanted is not None:
            wanted.radio.setChecked(True)
        self._card_changed()

    def _card_changed(self) -> None:
        card, spoken = self.card, self.source.currentData()
        for view in self.cards:
            view.update()
        self.source.blockSignals(True)
        self.source.clear()
        for code in card.sources if card else ():
            self.source.addItem(language_name(code), code)
        self.source.blockSignals(False)
        self._set(self.source, spoken)
        self._fill_targets()
        remote = card is not None and card.remote
        for field in (self.server, self.token_file):
            self._form.setRowVisible(field, remote)
        if card is not None and remote and not self.server.text():
            self.server.setText(card.preset.translator.url)
        self._ask_licences()

    def _fill_targets(self) -> None:
        wanted, card = self.target.currentData(), self.card
        self.target.clear()
        for code in card.targets(self.source.currentData()) if card else ():
            self.target.addItem(language_name(code), code)
        self._set(self.target, wanted)

    def _ask_licences(self) -> None:
        while (item := self._licences.takeAt(0)) is not None:
            if (old := item.widget()) is not None:
                old.hide()
                old.deleteLater()
        ticked = {name for name, box in self._boxes.items() if box.isChecked()}
        self._boxes = {}
        for name in self.card.unaccepted if self.card else ():
            row = QWidget()
            box = QCheckBox(fill(translate("Presets", "I accept the {licence}"), licence=name))
            box.setChecked(name in ticked)  # news of the machine do not take back what was accepted
            box.toggled.connect(self._enable)
            line = QHBoxLayout(row)
            line.setContentsMargins(0, 0, 0, 0)
            line.addWidget(box)
            if page := LICENCE_PAGES.get(name):
                read = QPushButton(translate("Presets", "Read it"))
                read.setAccessibleName(fill(translate("Presets", "Read the {licence}"), licence=name))
                read.setAutoDefault(False)
                read.clicked.connect(lambda _=False, page=page: QDesktopServices.openUrl(QUrl(page)))
                line.addWidget(read)
            line.addStretch(1)
            self._boxes[name] = box
            self._licences.addWidget(row)
        self._enable()

    def _enable(self) -> None:
        accepted = all(box.isChecked() for box in self._boxes.values())
        address = self.card is None or not self.card.remote or _ADDRESS.match(self.server.text().strip()) is not None
        ready = self.card is not None and accepted and address
        self.start.setEnabled(ready)
        self.use.setEnabled(ready)
        if self.card is None:
            self.hint.setText(translate("Presets", "No preset can be used on this machine."))
        elif not address:
            self.hint.setText(translate("Presets", "A server's address is ws://host:port or wss://host:port."))
        else:
            self.hint.setText("" if accepted else translate("Presets", "Accept the licence to go on."))

    def _choose(self, *, start: bool) -> None:
        if self.card is None:
            return
        context = self.context.toPlainText().strip()[:CONTEXT_LENGTH]
        self.chosen.emit(
            PresetChoice(
                self.card.preset.id,
                self.source.currentData(),
                self.target.currentData(),
                context,
                tuple(self._boxes),
                start,
                self.server.text().strip(),
                self.token_file.text().strip(),
            )
        )
        self.accept()

    @staticmethod
    def _set(box: QComboBox, code: str | None) -> None:
        index = box.findData(code)
        if index >= 0:
            box.setCurrentIndex(index)

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.setWindowTitle(translate("Presets", "Presets and languages"))
        texts = (
            translate("Presets", "Spoken &language"),
            translate("Presets", "Subtitles &in"),
            translate("Presets", "Translation ser&ver"),
            translate("Presets", "&File with its token"),
            translate("Presets", "&About the talk"),
        )
        for label, text, field in zip(self._labels, texts, self._fields, strict=True):
            label.setText(text)
            field.setAccessibleName(text.replace("&", ""))
        self.source.setToolTip(translate("Presets", "What the recogniser listens for"))
        self.context.setPlaceholderText(
            translate("Presets", "Names, terms and their translations, the occasion: helps the translator")
        )
        self.use.setText(translate("Presets", "&Use"))
        self.use.setToolTip(translate("Presets", "Load it without starting a session"))
        self.show_running(False)
        self._enable()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)
