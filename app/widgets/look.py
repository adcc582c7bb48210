"""How the window looks: one value that every widget is given, made from the settings and the theme."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontInfo, QGuiApplication, QPalette, QTextCharFormat
from PySide6.QtWidgets import QApplication

from app.window_settings import WindowSettings

CONTRAST = 4.5  # least ratio of text to background, WCAG AA
BAR_ALPHA = 216  # the state line stays readable however far the background lets the desktop through
SOURCE_SHARE = 0.62  # size of the source line's letters, of the subtitles'
EMOJI_FONTS = ("Noto Color Emoji", "Apple Color Emoji", "Segoe UI Emoji")
MARKS = {
    "dots": QTextCharFormat.UnderlineStyle.DotLine,
    "dashes": QTextCharFormat.UnderlineStyle.DashUnderline,
    "wave": QTextCharFormat.UnderlineStyle.WaveUnderline,
    "line": QTextCharFormat.UnderlineStyle.SingleUnderline,
}


def _font(points: float = 24.0, family: str = "") -> QFont:
    """The emoji fonts are named because Qt, left to itself, takes some emoji from fonts that cannot draw them."""
    font = QFont()
    emoji = [name for name in EMOJI_FONTS if QFontDatabase.hasFamily(name)]
    own = QFontInfo(font).family()  # the name behind the generic one, which alone would come after the emoji fonts
    font.setFamilies([*([family] if family else []), own, *emoji])
    font.setPointSizeF(points)
    font.setWeight(QFont.Weight.Medium)
    return font


@dataclass(frozen=True, slots=True)
class Look:
    """Colours are drawn on `background`, which lets the desktop through; `lines` sets the height of the window.

    Held text differs from stable text in lightness and by a mark under it, never by width: when it becomes stable, no
    letter moves. Without `show_held` it is not shown at all. `outline_px` is the width of the line around letters.
    """

    font: QFont = field(default_factory=_font)
    lines: int = 2
    background: QColor = field(default_factory=lambda: QColor(14, 16, 20, 216))
    stable: QColor = field(default_factory=lambda: QColor(255, 255, 255))
    held: QColor = field(default_factory=lambda: QColor(178, 190, 204))
    quiet: QColor = field(default_factory=lambda: QColor(190, 198, 208))
    warning: QColor = field(default_factory=lambda: QColor(255, 205, 120))
    accent: QColor = field(default_factory=lambda: QColor(120, 200, 255))
    outline: QColor = field(default_factory=lambda: QColor(0, 0, 0))
    outline_px: float = 0.0
    mark: QTextCharFormat.UnderlineStyle = QTextCharFormat.UnderlineStyle.DotLine
    show_held: bool = True
    source_line: bool = False
    smooth: bool = True
    radius: int = 14
    margin: int = 16

    @property
    def bar_background(self) -> QColor:
        """Behind the state line: the background, but never more transparent than it takes to read."""
        return QColor(
            self.background.red(),
            self.background.green(),
            self.background.blue(),
            max(self.background.alpha(), BAR_ALPHA),
        )

    @property
    def source_font(self) -> QFont:
        """The font of the source line."""
        font = QFont(self.font)
        font.setPointSizeF(max(8.0, self.font.pointSizeF() * SOURCE_SHARE))
        return font


_LIGHT: dict[str, tuple[int, ...]] = {
    "background": (250, 250, 251, 216),
    "stable": (16, 18, 22),
    "held": (72, 80, 92),
    "quiet": (64, 72, 84),
    "warning": (128, 60, 0),
    "accent": (0, 92, 168),
    "outline": (255, 255, 255),
}


def light() -> Look:
    """The look on a light background."""
    colours: dict[str, Any] = {name: QColor(*parts) for name, parts in _LIGHT.items()}
    return replace(Look(), **colours)


def is_dark(theme: str) -> bool:
    """Whether a theme means the dark look here; a system that says nothing gets it, as subtitles mostly are."""
    if theme != "system":
        return theme == "dark"
    return QGuiApplication.styleHints().colorScheme() is not Qt.ColorScheme.Light


def look_of(settings: WindowSettings) -> Look:
    """The look that the settings ask for."""
    base = Look() if is_dark(settings.theme) else light()
    font = _font(settings.font_pt, settings.font)
    if settings.bold:
        font.setWeight(QFont.Weight.Bold)
    background = QColor(settings.background) if settings.background else QColor(base.background)
    background.setAlphaF(settings.opacity)
    colours: dict[str, Any] = {
        name: QColor(value) for name in ("stable", "held", "outline") if (value := getattr(settings, name))
    }
    return replace(
        base,
        font=font,
        lines=settings.lines,
        background=background,
        outline_px=settings.outline_px,
        mark=MARKS[settings.mark],
        show_held=not settings.reading_mode,
        source_line=settings.source_line,
        smooth=settings.smooth,
        **colours,
    )


def use_theme(theme: str) -> None:
    """Dialogs follow the theme, too: through the platform where it can, else by colours of our own."""
    schemes = {"dark": Qt.ColorScheme.Dark, "light": Qt.ColorScheme.Light}
    QGuiApplication.styleHints().setColorScheme(schemes.get(theme, Qt.ColorScheme.Unknown))
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    application.setPalette(QPalette())  # what the platform makes of it
    if theme != "system" and (application.palette().window().color().lightnessF() < 0.5) is not is_dark(theme):
        application.setStyle("Fusion")  # a style that keeps to the palette
        application.setPalette(_palette(is_dark(theme)))


def _palette(dark: bool) -> QPalette:
    """Colours of dialogs; every text on its ground has a contrast of 4.5 or more."""
    role = QPalette.ColorRole
    window, base, button, text, link, chosen, faint, place = (
        ("#1e2127", "#2f343d", "#3a404b", "#f2f4f7", "#78c8ff", "#1f6fb2", "#8d949e", "#9aa3ae")
        if dark
        else ("#f3f4f6", "#ffffff", "#e6e8ec", "#14161a", "#005ca8", "#005ca8", "#8a9099", "#636b75")
    )
    palette = QPalette(QColor(button), QColor(window))
    for one, colour in (
        (role.Base, base), (role.AlternateBase, window), (role.ToolTipBase, base), (role.WindowText, text),
        (role.Text, text), (role.ButtonText, text), (role.ToolTipText, text), (role.Link, link),
        (role.Highlight, chosen), (role.HighlightedText, "#ffffff"), (role.PlaceholderText, place),
        (role.Accent, chosen),
    ):  # fmt: skip
        palette.setColor(one, QColor(colour))
    for one in (role.WindowText, role.Text, role.ButtonText):
        palette.setColor(QPalette.ColorGroup.Disabled, one, QColor(faint))
    return palette


def worst_contrast(text: QColor, background: QColor) -> float:
    """The least contrast of text on a translucent background, whatever desktop lies behind it."""
    return min(contrast(text, blend(background, QColor(desktop))) for desktop in ("white", "black"))


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
