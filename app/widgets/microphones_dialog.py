"""The microphone dialog: which input, how loud it is, and a test recording."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.devices import InputDevice
from app.i18n import fill, translate
from app.mic_check import LISTENING, PLAYING, RECORDED, RECORDING, TEST_S
from app.widgets.level_bar import LevelBar
from app.widgets.preset_card import plain_label
from app.widgets.sentences import say

KEY = Qt.ItemDataRole.UserRole


class MicrophonesDialog(QDialog):
    """`listen` carries the key (None: the default) of the device to show the level of, `chosen` that of the one to use.

    `refresh`, `record` and `play` are what the person asks for; `left`: the dialog listens no more.
    """

    listen = Signal(object)
    chosen = Signal(object)
    refresh = Signal()
    record = Signal()
    play = Signal()
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.list = QListWidget()
        self.list.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.meter = LevelBar()
        self.words, self.problem, self.overflows = plain_label(quiet=True), plain_label(), plain_label(quiet=True)
        self.words.setMinimumWidth(110)
        self.again, self.test, self.hear = QPushButton(), QPushButton(), QPushButton()
        self.hint = plain_label(quiet=True)
        self.use = QPushButton()
        self._busy = False
        self._arrange()
        self.list.currentItemChanged.connect(self._moved)
        self.list.itemDoubleClicked.connect(lambda _: self._use())
        self.again.clicked.connect(self.refresh)
        self.test.clicked.connect(self.record)
        self.hear.clicked.connect(self.play)
        self.use.clicked.connect(self._use)
        self.retranslate()
        self.show_state("")
        self.show_overflows(0)

    # ------------------------------------------------------------ what it is told

    def show_devices(self, devices: Sequence[InputDevice], current: str | None) -> None:
        """The inputs of this machine; `current` is in use, and is shown also when it is not connected."""
        self._busy = True
        self.list.clear()
        self._add(translate("Microphones", "The system's default microphone"), None)
        for device in devices:
            kind = translate("Microphones", "what this computer plays") if device.monitor else device.host_api
            self._add(f"{device.label}\n{kind}", device.key)
        known = [None, *(device.key for device in devices)]
        if current not in known and current is not None:
            missing = translate("Microphones", "not connected now")
            self._add(f"{current}\n{missing}", current)
            known.append(current)
        self.list.setCurrentRow(known.index(current))
        self._busy = False
        self.hint.setVisible(not devices)

    def show_level(self, peak: float) -> None:
        """Peak of the sound in [0, 1]."""
        self.meter.show_level(peak)
        self.words.setText(self.meter.words)

    def show_state(self, state: str) -> None:
        """What the check is doing: a word of `app.mic_check`."""
        self.test.setEnabled(state in (LISTENING, RECORDED))
        self.hear.setEnabled(state == RECORDED)
        if state == RECORDING:
            self.test.setText(translate("Microphones", "Recording… speak now"))
        else:
            self.test.setText(fill(translate("Microphones", "&Record {seconds:.0f} s"), seconds=TEST_S))
        playing = translate("Microphones", "Playing…")
        self.hear.setText(playing if state == PLAYING else translate("Microphones", "&Play it"))

    def show_problem(self, sentence: str) -> None:
        """What is wrong with the device that is listened to, or ""."""
        self.problem.setText(f"⚠ {say(sentence)}" if sentence else "")
        self.problem.setVisible(bool(sentence))

    def show_overflows(self, count: int) -> None:
        """How often sound was lost in the running session."""
        self.overflows.setText(
            fill(
                translate("Microphones", "In this session sound was lost {count} times: the machine is busy."),
                count=count,
            )
        )
        self.overflows.setVisible(count > 0)

    @property
    def key(self) -> str | None:
        """The device that is selected; None for the default."""
        item = self.list.currentItem()
        return item.data(KEY) if item else None

    # ------------------------------------------------------------ parts

    def _arrange(self) -> None:
        level = QHBoxLayout()
        level.addWidget(self.meter, 1)
        level.addWidget(self.words)
        tests = QHBoxLayout()
        for button in (self.test, self.hear):
            button.setAutoDefault(False)
            tests.addWidget(button)
        tests.addStretch(1)
        self.again.setAutoDefault(False)
        tests.addWidget(self.again)
        buttons = QDialogButtonBox()
        buttons.addButton(self.use, QDialogButtonBox.ButtonRole.AcceptRole)
        cancel = buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        cancel.clicked.connect(self.reject)
        self.use.setDefault(True)
        column = QVBoxLayout(self)
        column.addWidget(self.list, 1)
        column.addWidget(self.hint)
        column.addLayout(level)
        column.addWidget(self.problem)
        column.addWidget(self.overflows)
        column.addLayout(tests)
        column.addWidget(buttons)
        self.problem.hide()
        self.resize(520, 460)

    def _add(self, text: str, key: str | None) -> None:
        item = QListWidgetItem(text)
        item.setData(KEY, key)
        lines = text.count("\n") + 1
        item.setSizeHint(QSize(0, self.fontMetrics().lineSpacing() * lines + 10))
        item.setToolTip(key or "")
        self.list.addItem(item)

    def _moved(self) -> None:
        if not self._busy and self.isVisible():
            self.listen.emit(self.key)

    def _use(self) -> None:
        self.chosen.emit(self.key)
        self.accept()

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.setWindowTitle(translate("Microphones", "Microphone"))
        self.list.setAccessibleName(translate("Microphones", "Microphones"))
        self.use.setText(translate("Microphones", "&Use this microphone"))
        self.again.setText(translate("Microphones", "&Look again"))
        self.again.setToolTip(translate("Microphones", "After a device was connected; not during a session"))
        self.hint.setText(
            translate(
                "Microphones", "There is no microphone: connect one and look again, or play a file with `surtitle run`."
            )
        )
        self.words.setText(self.meter.words)

    # ------------------------------------------------------------ Qt's events

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.listen.emit(self.key)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.left.emit()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)
