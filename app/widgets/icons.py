"""The program's icons: drawings in one colour, which is chosen when they are used."""

from __future__ import annotations

import functools

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from engine.presets import resources

SIZES = (16, 20, 24, 32, 40, 48, 64)  # also for screens at 200 %


@functools.lru_cache(maxsize=128)
def _drawing(name: str) -> str:
    return (resources() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


def icon(name: str, colour: QColor, faint: QColor | None = None) -> QIcon:
    """The icon of that name in a colour; `faint` is for what cannot be chosen now."""
    made = QIcon()
    _add(made, name, colour, QIcon.Mode.Normal)
    if faint is not None:
        _add(made, name, faint, QIcon.Mode.Disabled)
    return made


def program_icon() -> QIcon:
    """The program's own icon."""
    return icon("surtitle", QColor("white"))


def _add(made: QIcon, name: str, colour: QColor, mode: QIcon.Mode) -> None:
    renderer = QSvgRenderer(QByteArray(_drawing(name).replace("currentColor", colour.name()).encode()))
    for size in SIZES:
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        made.addPixmap(pixmap, mode)
