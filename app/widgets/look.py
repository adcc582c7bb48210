"""How the window looks: one value that every widget is given."""

from __future__ import annotations

from dataclasses import dataclass, field

from PySide6.QtGui import QColor, QFont

CONTRAST = 4.5  # least ratio of text to background, WCAG AA


def _font() -> QFont:
    font = QFont()
    font.setPointSizeF(24)
    font.setWeight(QFont.Weight.Medium)
    return font


@dataclass(frozen=True, slots=True)
class Look:
    """Colours are drawn on `background`, which lets the desktop through; `lines` sets the height a window starts with.

    Held text differs from stable text in lightness and by a dotted line under it, never by width: when it becomes
    stable, no letter moves.
    """

    font: QFont = field(default_factory=_font)
    lines: int = 2
    background: QColor = field(default_factory=lambda: QColor(14, 16, 20, 216))
    stable: QColor = field(default_factory=lambda: QColor(255, 255, 255))
    held: QColor = field(default_factory=lambda: QColor(178, 190, 204))
    quiet: QColor = field(default_factory=lambda: QColor(190, 198, 208))
    warning: QColor = field(default_factory=lambda: QColor(255, 205, 120))
    accent: QColor = field(default_factory=lambda: QColor(120, 200, 255))
    radius: int = 14
    margin: int = 16


def blend(over: QColor, under: QColor) -> QColor:
    """The opaque colour that a translucent one gives on another."""
    a = over.alphaF()
    red, green, blue = (
        round(a * top + (1 - a) * below)
        for top, below in zip(
            (over.red(), over.green(), over.blue()), (under.red(), under.green(), under.blue()), strict=True
        )
    )
    return QColor(red, green, blue)


def contrast(one: QColor, other: QColor) -> float:
    """Ratio of the relative luminances of two opaque colours, 1 to 21 (WCAG 2.1)."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: QColor) -> float:
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (colour.redF(), colour.greenF(), colour.blueF())
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
