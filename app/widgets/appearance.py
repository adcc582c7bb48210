"""The page that changes how the window looks; every change is seen at once in the window itself."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QLocale, QSignalBlocker, Qt, Signal
from PySide6.QtGui import QColor, QFont
from PySide6.QtWidgets import (
    QCheckBox,
    QColorDialog,
    QComboBox,
    QDoubleSpinBox,
    QFontComboBox,
    QFormLayout,
    QLabel,
    QPushButton,
    QSlider,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.i18n import fill, languages, translate
from app.widgets.look import CONTRAST, look_of, worst_contrast
from app.widgets.subtitle_window import stays_on_top
from app.window_settings import LINGER_S, MARKS, THEMES, WindowSettings

COLOURS = ("stable", "held", "background", "outline")
OUTLINE_PX = 2.0  # advised where the background lets much of the desktop through


class ColourButton(QPushButton):
    """Shows a colour and lets another be chosen. `chosen` carries "#rrggbb"."""

    chosen = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._colour = QColor("white")
        self.clicked.connect(self._choose)

    def show_colour(self, colour: QColor) -> None:
        """The colour in use."""
        self._colour = colour
        text = "#000000" if colour.lightnessF() > 0.5 else "#ffffff"
        self.setText(colour.name())
        self.setStyleSheet(f"QPushButton {{ background: {colour.name()}; color: {text}; padding: 4px 14px; }}")

    def _choose(self) -> None:
        colour = QColorDialog.getColor(self._colour, self, self.accessibleName())
        if colour.isValid():
            self.chosen.emit(colour.name())


class AppearancePage(QWidget):
    """`changed` carries new `WindowSettings` at every change."""

    changed = Signal(object)

    def __init__(self, settings: WindowSettings, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.theme, self.language, self.mark = QComboBox(), QComboBox(), QComboBox()
        self.font_family, self.points, self.lines = QFontComboBox(), QDoubleSpinBox(), QSpinBox()
        self.colours = {name: ColourButton() for name in COLOURS}
        self.opacity, self.outline_px, self.linger = QSlider(Qt.Orientation.Horizontal), QDoubleSpinBox(), QSpinBox()
        self.checks = {
            name: QCheckBox() for name in ("bold", "reading_mode", "source_line", "smooth", "fade", "on_top")
        }
        self.contrast, self.wayland = QLabel(), QLabel()
        self.defaults = QPushButton()
        self._labels: dict[QWidget, QLabel] = {}
        self._limit()
        self._arrange()
        self._connect()
        self.retranslate()

    def show_settings(self, settings: WindowSettings) -> None:
        """Show what is in use."""
        self._settings = settings
        look = look_of(settings)
        blockers = [QSignalBlocker(widget) for widget in self.findChildren(QWidget)]
        self.theme.setCurrentIndex(THEMES.index(settings.theme))
        self.mark.setCurrentIndex(MARKS.index(settings.mark))
        self.language.setCurrentIndex(max(0, self.language.findData(settings.language)))
        self.font_family.setCurrentFont(QFont(look.font.families()[0]))
        self.points.setValue(settings.font_pt)
        self.lines.setValue(settings.lines)
        self.opacity.setValue(round(100 * settings.opacity))
        self.outline_px.setValue(settings.outline_px)
        self.linger.setValue(round(settings.linger_s))
        for name, check in self.checks.items():
            check.setChecked(getattr(settings, name))
        for name, button in self.colours.items():
            button.show_colour(QColor(getattr(look, name)))
        del blockers
        self._judge()

    def retranslate(self) -> None:
        """Words in the interface's language."""
        own = QLocale().nativeLanguageName()
        self._fill(
            self.theme,
            [
                (translate("Look", "As the system"), "system"),
                (translate("Look", "Dark"), "dark"),
                (translate("Look", "Light"), "light"),
            ],
        )
        self._fill(
            self.mark,
            [
                (translate("Look", "Dots under it"), "dots"),
                (translate("Look", "Dashes under it"), "dashes"),
                (translate("Look", "Wave under it"), "wave"),
                (translate("Look", "Line under it"), "line"),
            ],
        )
        system = translate("Look", "As the system")
        self._fill(
            self.language,
            [(f"{system} ({own})" if own else system, ""), *((name, code) for code, name in languages().items())],
        )
        for widget, text in (
            (self.language, translate("Look", "Language of the &interface")),
            (self.theme, translate("Look", "&Theme")),
            (self.font_family, translate("Look", "&Font")),
            (self.points, translate("Look", "&Size")),
            (self.lines, translate("Look", "&Lines")),
            (self.colours["stable"], translate("Look", "Colour of stable text")),
            (self.colours["held"], translate("Look", "Colour of held text")),
            (self.mark, translate("Look", "&Held text also has")),
            (self.colours["background"], translate("Look", "Colour of the background")),
            (self.opacity, translate("Look", "&Opacity of the background")),
            (self.outline_px, translate("Look", "Outl&ine of letters")),
            (self.colours["outline"], translate("Look", "Colour of the outline")),
            (self.linger, translate("Look", "Last lines stay &for")),
        ):
            self._labels[widget].setText(text)
            widget.setAccessibleName(text.replace("&", ""))
        for name, text in (
            ("bold", translate("Look", "&Bold")),
            ("reading_mode", translate("Look", "&Reading mode: stable text only")),
            ("source_line", translate("Look", "Show what was hear&d")),
            ("smooth", translate("Look", "S&mooth scrolling and fading")),
            ("fade", translate("Look", "The last lines fade &away")),
            ("on_top", translate("Look", "&Above other windows")),
        ):
            self.checks[name].setText(text)
        self.linger.setSuffix(" " + translate("Look", "seconds"))
        self.wayland.setText(
            translate(
                "Look",
                "On Wayland a program can neither keep itself above others nor choose its"
                " place; the desktop's own window menu can.",
            )
        )
        self.defaults.setText(translate("Look", "Back to the &defaults"))
        self.show_settings(self._settings)

    # ------------------------------------------------------------ parts

    def _limit(self) -> None:
        self.points.setRange(8, 144)
        self.points.setSuffix(" pt")
        self.points.setDecimals(0)
        self.lines.setRange(1, 6)
        self.opacity.setRange(0, 100)
        self.outline_px.setRange(0, 8)
        self.outline_px.setSingleStep(0.5)
        self.outline_px.setDecimals(1)
        self.outline_px.setSuffix(" px")
        self.linger.setRange(round(LINGER_S), 600)
        self.contrast.setWordWrap(True)
        self.contrast.setTextFormat(Qt.TextFormat.PlainText)
        self.wayland.setWordWrap(True)

    def _arrange(self) -> None:
        form = QFormLayout()
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        for widget in (
            self.language, self.theme, self.font_family, self.points, self.checks["bold"], self.lines,
            self.colours["stable"], self.colours["held"], self.mark, self.colours["background"], self.opacity,
            self.outline_px, self.colours["outline"], self.contrast, self.checks["reading_mode"],
            self.checks["source_line"], self.checks["smooth"], self.checks["fade"], self.linger,
        ):  # fmt: skip
            if isinstance(widget, QCheckBox | QLabel):
                form.addRow("", widget)
                continue
            label = self._labels[widget] = QLabel()
            label.setBuddy(widget)
            form.addRow(label, widget)
        form.addRow("", self.checks["on_top"] if stays_on_top() else self.wayland)
        column = QVBoxLayout(self)
        column.addLayout(form)
        column.addStretch(1)
        column.addWidget(self.defaults, 0, Qt.AlignmentFlag.AlignLeft)

    def _connect(self) -> None:
        for box, name in ((self.theme, "theme"), (self.mark, "mark"), (self.language, "language")):
            box.activated.connect(lambda _, box=box, name=name: self._change(name, box.currentData()))
        self.font_family.currentFontChanged.connect(lambda font: self._change("font", font.family()))
        for number, name, scale in (
            (self.points, "font_pt", 1.0),
            (self.lines, "lines", 1),
            (self.opacity, "opacity", 0.01),
            (self.outline_px, "outline_px", 1.0),
            (self.linger, "linger_s", 1.0),
        ):
            number.valueChanged.connect(lambda value, name=name, scale=scale: self._change(name, value * scale))
        for name, check in self.checks.items():
            check.toggled.connect(lambda on, name=name: self._change(name, on))
        for name, button in self.colours.items():
            button.chosen.connect(lambda colour, name=name: self._change(name, colour))
        self.defaults.clicked.connect(self._reset)

    def _fill(self, box: QComboBox, items: list[tuple[str, str]]) -> None:
        with QSignalBlocker(box):
            box.clear()
            for text, data in items:
                box.addItem(text, data)

    def _change(self, name: str, value: Any) -> None:
        settings = self._settings.model_copy(deep=True)
        setattr(settings, name, value)
        if name == "theme":  # colours chosen for the other background would be unreadable on this one
            for colour in COLOURS:
                setattr(settings, colour, "")
        self._tell(settings)

    def _reset(self) -> None:
        kept = {name: getattr(self._settings, name) for name in ("language", "geometry", "shortcuts", "page")}
        self._tell(WindowSettings(**kept))

    def _tell(self, settings: WindowSettings) -> None:
        if settings != self._settings:
            self.show_settings(settings)
            self.changed.emit(settings)

    def _judge(self) -> None:
        """Say so when the text may be hard to read on some desktops."""
        look = look_of(self._settings)
        ratios = [worst_contrast(colour, look.background) for colour in (look.stable, look.held)]
        worst = min(ratios)
        good = worst >= CONTRAST or self._settings.outline_px >= OUTLINE_PX
        text = fill(translate("Look", "Contrast {ratio:.1f}:1 at worst."), ratio=worst)
        if not good:
            text += " " + translate("Look", "Hard to read on some desktops: more opacity or an outline of 2 px helps.")
        self.contrast.setText(text if good else f"⚠ {text}")

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)
