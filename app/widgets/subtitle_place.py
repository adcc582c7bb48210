"""Where the window stands: remembered per screen, and pulled back when that screen is gone or smaller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QGuiApplication, QScreen

from app.window_settings import Geometry

SHARE_OF_SCREEN = 0.6
MAX_WIDTH = 1200  # of a window that nobody has placed yet
ABOVE_EDGE = 40


@dataclass(frozen=True, slots=True)
class Screen:
    """One monitor: its name and the part of it that windows may use, in logical pixels."""

    name: str
    area: QRect


def screens() -> list[Screen]:
    """The monitors, the primary one first."""
    primary = QGuiApplication.primaryScreen()
    others = [screen for screen in QGuiApplication.screens() if screen is not primary]
    return [_screen(screen) for screen in (primary, *others)]


def _screen(screen: QScreen) -> Screen:
    return Screen(screen.name(), screen.availableGeometry())


def initial(geometry: Geometry | None, monitors: Sequence[Screen], hint: QSize) -> QRect:
    """Where a window opens: as remembered, else at the bottom of the primary screen, in the middle. All of it is on one
    screen. `hint` is the size of a window that was never placed.
    """
    home = next((one for one in monitors if geometry and one.name == geometry.screen), None)
    if geometry is None or geometry.width == 0 or geometry.height == 0:
        return _at_bottom((home or monitors[0]).area, hint)
    size = QSize(geometry.width, geometry.height)
    if home is None:
        return _at_bottom(monitors[0].area, size)
    return inside(QRect(home.area.topLeft().x() + geometry.x, home.area.y() + geometry.y, *size.toTuple()), home.area)


def remembered(rect: QRect, monitors: Sequence[Screen]) -> Geometry:
    """What to remember of a window's place."""
    home = nearest(rect, monitors)
    x, y = rect.x() - home.area.x(), rect.y() - home.area.y()
    return Geometry(screen=home.name, x=x, y=y, width=rect.width(), height=rect.height())


def pulled_back(rect: QRect, monitors: Sequence[Screen]) -> QRect:
    """The same place, or the nearest that lies on a screen entirely."""
    return inside(rect, nearest(rect, monitors).area)


def nearest(rect: QRect, monitors: Sequence[Screen]) -> Screen:
    """The screen that shows most of a window, or is the least far from it."""

    def distance(one: Screen) -> tuple[int, int]:
        seen = one.area.intersected(rect)
        away = (inside(rect, one.area).center() - rect.center()).manhattanLength()
        return -seen.width() * seen.height() if seen.isValid() else 0, away

    return min(monitors, key=distance)


def inside(rect: QRect, area: QRect) -> QRect:
    """Moved, and made smaller where it must be, so that it lies within the area."""
    width, height = min(rect.width(), area.width()), min(rect.height(), area.height())
    x = min(max(rect.x(), area.x()), area.x() + area.width() - width)
    y = min(max(rect.y(), area.y()), area.y() + area.height() - height)
    return QRect(x, y, width, height)


def _at_bottom(area: QRect, size: QSize) -> QRect:
    width = min(size.width(), area.width())
    left = area.x() + (area.width() - width) // 2
    top = area.y() + area.height() - size.height() - ABOVE_EDGE
    return inside(QRect(left, top, width, size.height()), area)


def default_width(monitors: Sequence[Screen]) -> int:
    """The width of a window that nobody has placed yet."""
    return min(MAX_WIDTH, round(monitors[0].area.width() * SHARE_OF_SCREEN))
