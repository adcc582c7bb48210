"""A frameless window that mouse and keys move and resize, and whose place is remembered and kept on the screen."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QPoint, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QMouseEvent, QMoveEvent, QResizeEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.widgets import subtitle_place as place
from app.window_settings import Geometry

EDGE = 6  # pixels at the rim that resize instead of moving
STEP = 20  # pixels by which a key moves or resizes
SETTLE_MS = 500  # a place counts when the window has stood there for so long
_ARROWS = {
    Qt.Key.Key_Left: QPoint(-STEP, 0),
    Qt.Key.Key_Right: QPoint(STEP, 0),
    Qt.Key.Key_Up: QPoint(0, -STEP),
    Qt.Key.Key_Down: QPoint(0, STEP),
}
_CURSORS = {
    Qt.Edge.LeftEdge | Qt.Edge.TopEdge: Qt.CursorShape.SizeFDiagCursor,
    Qt.Edge.RightEdge | Qt.Edge.BottomEdge: Qt.CursorShape.SizeFDiagCursor,
    Qt.Edge.RightEdge | Qt.Edge.TopEdge: Qt.CursorShape.SizeBDiagCursor,
    Qt.Edge.LeftEdge | Qt.Edge.BottomEdge: Qt.CursorShape.SizeBDiagCursor,
    Qt.Edge.LeftEdge: Qt.CursorShape.SizeHorCursor,
    Qt.Edge.RightEdge: Qt.CursorShape.SizeHorCursor,
    Qt.Edge.TopEdge: Qt.CursorShape.SizeVerCursor,
    Qt.Edge.BottomEdge: Qt.CursorShape.SizeVerCursor,
}


class Frame(QWidget):
    """Alt and an arrow moves the window, with Shift it resizes. `moved` carries the `Geometry` when the person has put
    it somewhere else.
    """

    moved = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._grabbed: QPoint | None = None
        self._placed = False
        self.setMouseTracking(True)
        self._settle = QTimer(self)
        self._settle.setSingleShot(True)
        self._settle.setInterval(SETTLE_MS)
        self._settle.timeout.connect(self._settled)
        self._links: list[tuple[Any, Any]] = []
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        self._application = application
        self._listen(self._application.screenRemoved, self._screens_changed)
        self._listen(self._application.primaryScreenChanged, self._screens_changed)

    def place(self, geometry: Geometry | None) -> None:
        """Put it where it was, or at the bottom of the screen; on Wayland the compositor decides."""
        monitors = place.screens()
        hint = QSize(place.default_width(monitors), self.sizeHint().height())
        self.setGeometry(place.initial(geometry, monitors, hint))
        self._placed = True

    def fit_height(self, height: int) -> None:
        """Grow or shrink upwards: the lower edge stays, unless the screen ends."""
        if self._placed and height != self.height():
            old = self.geometry()
            new = QRect(old.x(), old.bottom() + 1 - height, old.width(), height)
            self.setGeometry(place.pulled_back(new, place.screens()))

    def let_go(self) -> None:
        """Listen to nothing any more; a place that has not settled yet is remembered now."""
        if self._settle.isActive():
            self._settle.stop()
            self._settled()
        for signal, slot in self._links:
            signal.disconnect(slot)
        self._links.clear()

    def _listen(self, signal: Any, slot: Any) -> None:
        """Connect to something that lives longer than the window."""
        signal.connect(slot)
        self._links.append((signal, slot))

    def _screens_changed(self, *_: object) -> None:
        if QGuiApplication.screens():
            self.setGeometry(place.pulled_back(self.geometry(), place.screens()))

    def _settled(self) -> None:
        self.moved.emit(place.remembered(self.geometry(), place.screens()))

    def _edges(self, at: QPoint) -> Qt.Edge:
        edges = Qt.Edge(0)
        for edge, near in (
            (Qt.Edge.LeftEdge, at.x() < EDGE),
            (Qt.Edge.RightEdge, at.x() >= self.width() - EDGE),
            (Qt.Edge.TopEdge, at.y() < EDGE),
            (Qt.Edge.BottomEdge, at.y() >= self.height() - EDGE),
        ):
            if near:
                edges |= edge
        return edges

    # ------------------------------------------------------------ Qt's events

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton:
            return
        handle, edges = self.windowHandle(), self._edges(event.position().toPoint())
        if handle is None or (not (edges and handle.startSystemResize(edges)) and not handle.startSystemMove()):
            self._grabbed = event.globalPosition().toPoint() - self.pos()  # no window manager that could do it
        event.accept()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._grabbed is not None:
            self.move(event.globalPosition().toPoint() - self._grabbed)
        elif not event.buttons():
            shape = _CURSORS.get(self._edges(event.position().toPoint()), Qt.CursorShape.ArrowCursor)
            if self.cursor().shape() is not shape:
                self.setCursor(shape)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._grabbed = None

    def leaveEvent(self, event: QEvent) -> None:
        self.unsetCursor()
        super().leaveEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        by = _ARROWS.get(Qt.Key(event.key()))
        held = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if by is not None and held == Qt.KeyboardModifier.AltModifier:
            self.setGeometry(place.pulled_back(self.geometry().translated(by), place.screens()))
        elif by is not None and held == Qt.KeyboardModifier.AltModifier | Qt.KeyboardModifier.ShiftModifier:
            size = QSize(self.width() + by.x(), self.height() + by.y()).expandedTo(self.minimumSizeHint())
            self.setGeometry(place.pulled_back(QRect(self.pos(), size), place.screens()))
        else:
            super().keyPressEvent(event)

    def moveEvent(self, event: QMoveEvent) -> None:
        self._changed_place()
        super().moveEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._changed_place()
        super().resizeEvent(event)

    def _changed_place(self) -> None:
        if self._placed and self.isVisible():
            self._settle.start()
