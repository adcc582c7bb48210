"""The small bar under the subtitles: what the program is doing, how loud it hears, and the buttons."""

from __future__ import annotations

import math

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPalette
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.i18n import fill, translate
from app.status import Phase, Status
from app.widgets.elided_label import ElidedLabel
from app.widgets.icons import icon
from app.widgets.look import Look
from app.widgets.sentences import say, state_line

FLOOR_DB = -60.0
SIGN = 16  # pixels of the warning sign
STATE_WIDTH = 90  # pixels, at least
TROUBLE_WIDTH = 220  # for a sentence on what went wrong
TROUBLE = (Phase.SOURCE_LOST, Phase.ENGINE_STOPPED, Phase.FAILED)
BAR_HEIGHT = 40
ROWS = 2  # lines of words that always fit, so that a notice does not push the subtitles


class LevelMeter(QProgressBar):
    """Peak of the sound on a scale of decibels. A progress bar, so that screen readers know what it is."""

    def __init__(self, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._look, self._share = look, 0.0
        self.setRange(0, 100)
        self.setTextVisible(False)
        self.setFixedSize(QSize(64, 8))

    def set_look(self, look: Look) -> None:
        """Colours of the look."""
        self._look = look
        self.update()

    def show_level(self, peak: float) -> None:
        """`peak` in [0, 1]."""
        level_db = 20 * math.log10(peak) if peak > 0 else FLOOR_DB
        share = round(min(1.0, max(0.0, 1 - level_db / FLOOR_DB)), 2)
        if share != self._share:
            self._share = share
            self.setValue(round(100 * share))
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        track = QRectF(self.rect())
        for share, colour, opacity in ((1.0, self._look.quiet, 0.3), (self._share, self._look.accent, 1.0)):
            painter.setOpacity(opacity)
            painter.setBrush(colour)
            bar = QRectF(track.left(), track.top(), track.width() * share, track.height())
            painter.drawRoundedRect(bar, 4, 4)
        painter.end()


class StateBar(QWidget):
    """Shows a `Status`. `toggle` and `restart` are what the person asks for. `controls` appear at its right when they
    are wanted.
    """

    toggle = Signal()
    restart = Signal()

    def __init__(self, look: Look, controls: QWidget | None = None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._status = Status()
        self._keys = {"toggle": "", "restart": ""}
        self.sign = QLabel()
        self.state, self.notice, self.quality = ElidedLabel(STATE_WIDTH), ElidedLabel(), QLabel()
        self.quality.setTextFormat(Qt.TextFormat.PlainText)
        self.meter = LevelMeter(look)
        self.button, self.again = QPushButton(), QPushButton()
        self.progress = QProgressBar()
        self.progress.setRange(0, 100)
        self.progress.setTextVisible(False)
        self.progress.setFixedHeight(3)
        self.button.clicked.connect(self.toggle)
        self.again.clicked.connect(self.restart)
        self._arrange(controls)
        self.set_look(look)

    def show_status(self, status: Status) -> None:
        """Show what the program is doing."""
        self._status = status
        trouble = status.phase in TROUBLE
        _say(self.state, state_line(status), self._look.warning if trouble else self._look.quiet)
        _say(self.notice, " ".join(map(say, status.notices)), self._look.warning)
        _say(self.quality, say(status.quality), self._look.quiet)
        self.state.setMinimumWidth(TROUBLE_WIDTH if trouble else STATE_WIDTH)
        self.sign.setVisible(trouble or bool(status.notices))
        self.notice.setVisible(bool(status.notices) and not trouble)
        self.quality.setVisible(bool(status.quality))
        self.meter.setVisible(status.phase is Phase.LISTENING)
        self.again.setVisible(status.can_restart)
        self.button.setVisible(not status.can_restart)
        self.button.setEnabled(status.phase is not Phase.STOPPING)
        running = status.wanted or status.phase.running
        _name(self.button, translate("StateBar", "Stop") if running else translate("StateBar", "Start"))
        self.progress.setVisible(status.phase is Phase.LOADING)
        self.progress.setValue(round(100 * (status.progress or 0.0)))

    @property
    def running(self) -> bool:
        """Whether the button stops rather than starts."""
        return self._status.wanted or self._status.phase.running

    def set_shortcuts(self, toggle: str, restart: str) -> None:
        """The keys that do what the buttons do, for people to read."""
        self._keys = {"toggle": toggle, "restart": restart}
        self.retranslate()

    def set_look(self, look: Look) -> None:
        """Colours of the look."""
        self._look = look
        self.meter.set_look(look)
        self.sign.setPixmap(icon("warning", look.warning).pixmap(QSize(SIGN, SIGN), self.devicePixelRatioF()))
        self._colour()
        self.retranslate()

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.sign.setAccessibleName(translate("StateBar", "Warning"))
        self.state.setAccessibleName(translate("StateBar", "State"))
        self.notice.setAccessibleName(translate("StateBar", "Notice"))
        self.quality.setAccessibleName(translate("StateBar", "Quality of the translation"))
        self.meter.setAccessibleName(translate("StateBar", "Microphone level"))
        self.progress.setAccessibleName(translate("StateBar", "Loading"))
        _name(self.again, translate("StateBar", "Restart"))
        for button, wish in ((self.button, "toggle"), (self.again, "restart")):
            keys = self._keys[wish]
            button.setToolTip(keys)
            text = fill(translate("StateBar", "Shortcut {keys}"), keys=keys) if keys else ""
            button.setAccessibleDescription(text)
        self.show_status(self._status)

    def _arrange(self, controls: QWidget | None) -> None:
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(10)
        row.addWidget(self.sign)
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(self.state, 1)
        words.addWidget(self.notice, 1)
        row.addLayout(words, 1)
        rest = (self.quality, self.meter, *([controls] if controls else []), self.again, self.button)
        for widget in rest:
            row.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self.progress)
        column.addLayout(row)
        self.setFixedHeight(max(BAR_HEIGHT, ROWS * self.fontMetrics().lineSpacing() + 8))
        policy = self.progress.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # nothing moves when loading is done
        self.progress.setSizePolicy(policy)

    def _colour(self) -> None:
        look = self._look
        text, accent = look.stable.name(), look.accent.name()
        red, green, blue = look.stable.red(), look.stable.green(), look.stable.blue()

        def wash(alpha: int) -> str:
            return f"rgba({red}, {green}, {blue}, {alpha})"

        self.setStyleSheet(
            f"QPushButton {{ color: {text}; background: {wash(28)}; padding: 3px 12px;"
            f" border: 1px solid {wash(70)}; border-radius: 6px; }}"
            f"QPushButton:hover {{ background: {wash(52)}; }}"
            f"QPushButton:focus {{ border: 2px solid {accent}; padding: 2px 11px; }}"
            f"QPushButton:disabled {{ color: {look.quiet.name()}; }}"
            f"StateBar > QProgressBar {{ background: {wash(30)}; border: none; }}"
            f"StateBar > QProgressBar::chunk {{ background: {accent}; }}"
        )


def _say(label: QLabel, text: str, colour: object) -> None:
    if label.text() != text:
        label.setText(text)
    palette = label.palette()
    if palette.color(QPalette.ColorRole.WindowText) != colour:
        palette.setColor(QPalette.ColorRole.WindowText, colour)
        label.setPalette(palette)


def _name(button: QPushButton, text: str) -> None:
    button.setText(text)
    button.setAccessibleName(text)
