"""One preset in the preset dialog: a card that can be chosen."""

from __future__ import annotations

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPalette, QPen
from PySide6.QtWidgets import QLabel, QRadioButton, QSizePolicy, QVBoxLayout, QWidget

from app.i18n import fill, translate
from app.preset_cards import PresetCard
from app.widgets.look import blend
from app.widgets.preset_texts import (
    languages_text,
    need_text,
    preset_text,
    reason_text,
    speed_text,
    weights_text,
)

MARGIN = 12


def plain_label(text: str = "", *, quiet: bool = False) -> QLabel:
    """A label of plain text that wraps, and that can be copied from. `quiet`: less important than what it stands by."""
    label = QLabel(text)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
    policy.setHeightForWidth(True)
    label.setSizePolicy(policy)
    if quiet:
        soften(label)
    return label


def soften(label: QLabel) -> None:
    """Less ink, still 4.5 to 1 and more against its background."""
    palette = label.palette()
    text, window = palette.color(QPalette.ColorRole.WindowText), palette.color(QPalette.ColorRole.Window)
    text.setAlphaF(0.78)
    palette.setColor(QPalette.ColorRole.WindowText, blend(text, window))
    label.setPalette(palette)


class CardView(QWidget):
    """`chosen`: the person wants this preset."""

    chosen = Signal()

    def __init__(self, card: PresetCard) -> None:
        super().__init__()
        self.card = card
        preset = card.preset
        self.radio = QRadioButton(preset_text(preset.title))
        font = self.radio.font()
        font.setBold(True)
        font.setPointSizeF(font.pointSizeF() * 1.15)
        self.radio.setFont(font)
        self.radio.toggled.connect(lambda on: self.chosen.emit() if on else None)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, MARGIN, MARGIN, MARGIN)
        column.setSpacing(4)
        column.addWidget(self.radio)
        about = preset_text(preset.description)
        if preset.quality:
            quality = fill(translate("Presets", "Translations are of {quality}."), quality=preset_text(preset.quality))
            about = f"{about} {quality}"
        column.addWidget(plain_label(about))
        column.addWidget(plain_label(languages_text(card), quiet=True))
        column.addWidget(plain_label(self._needs(), quiet=True))
        column.addWidget(plain_label(speed_text(card), quiet=True))
        self.reason = plain_label(f"⚠ {reason_text(card)}" if not card.usable else "")
        self.reason.setVisible(not card.usable)
        column.addWidget(self.reason)
        self.radio.setEnabled(card.usable)
        self.radio.setAccessibleDescription(" ".join(filter(None, (about, languages_text(card), reason_text(card)))))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def _needs(self) -> str:
        """The machine's part in a row, each model on its own: a name with a slash would be broken there otherwise."""
        met = "   ".join(f"{'✓' if need.met else '✗'}\u00a0{need_text(need)}" for need in self.card.needs)
        marks = {True: "✓", False: "✗", None: "·"}
        here = [f"{marks[weights.present]}\u00a0{weights_text(weights)}" for weights in self.card.weights]
        return "\n".join(filter(None, (met, *here)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self.card.usable:
            self.radio.setChecked(True)
            self.radio.setFocus(Qt.FocusReason.MouseFocusReason)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        on = self.radio.isChecked()
        role = QPalette.ColorRole.Highlight if on else QPalette.ColorRole.Mid
        painter.setPen(QPen(self.palette().color(role), 2 if on else 1))
        painter.setBrush(self.palette().color(QPalette.ColorRole.Base))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(1, 1, -1, -1), 8, 8)
        painter.end()
