"""The subtitles themselves: as many of the newest rows as fit, and above them, if wanted, what was heard."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QEasingCurve, QRectF, QSize, QTimer, QVariantAnimation, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QHideEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QLabel, QSizePolicy, QWidget

from app.subtitles import Line, Subtitles
from app.widgets.look import Look
from app.widgets.text_layout import CaptionLayout
from app.window_settings import LINGER_S

SCROLL_MS = 160
FADE_MS = 900
GAP = 4  # pixels between the source line and the subtitles


class SubtitleView(QLabel):
    """Paints a `Subtitles` model; it is repainted when the model says that something changed. A label, because that is
    what screen readers take text from. `grew`: a script that needs higher rows has come.
    """

    grew = Signal()

    def __init__(self, subtitles: Subtitles, look: Look, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._subtitles, self._look = subtitles, look
        self._linger_s: float | None = LINGER_S
        self._speech, self._opacity, self._shift = False, 1.0, 0.0
        self._gone: dict[tuple[int, int], Line] = {}  # faded, as they were then
        self._scroll = self._animation(SCROLL_MS, QEasingCurve.Type.OutCubic)
        self._scroll.valueChanged.connect(self._scrolled)
        self._fade = self._animation(FADE_MS, QEasingCurve.Type.Linear)
        self._fade.valueChanged.connect(self._faded)
        self._fade.finished.connect(self._vanish)
        self._quiet = QTimer(self)
        self._quiet.setSingleShot(True)
        self._quiet.timeout.connect(self._begin_fade)
        self._make_layouts()
        self._leave = subtitles.changed.subscribe(self._changed)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)

    def detach(self) -> None:
        """Stop listening to the model."""
        self._leave()
        self._rest()

    def set_look(self, look: Look) -> None:
        """Show in another manner from now on."""
        self._look = look
        self._make_layouts()
        self.updateGeometry()
        self.update()

    def set_linger(self, seconds: float | None) -> None:
        """How long the last lines stay after speech has ended; None: for ever."""
        self._linger_s = seconds
        self._stay()

    def set_speech(self, speech: bool) -> None:
        """While somebody speaks nothing fades."""
        if speech != self._speech:
            self._speech = speech
            self._stay()

    def text(self) -> list[str]:  # type: ignore[override]  # a label has one text, this one has rows
        """What is on screen, row by row."""
        self._layout.set_width(float(self.width()))
        return self._layout.text(self._lines, self._height)

    def source_text(self) -> str:
        """What the source line shows; "" without one."""
        if self._source is None:
            return ""
        self._source.set_width(float(self.width()))
        return "".join(self._source.text(self._lines, self._source.pitch))

    @property
    def rows(self) -> int:
        """How many rows of subtitles fit now."""
        return self._layout.visible(self._height)

    def height_of(self, rows: int) -> int:
        """Pixels that so many rows of subtitles need."""
        return round(rows * self._layout.pitch) + 2 + round(self._source_height)

    def sizeHint(self) -> QSize:
        """Room for the number of lines that the look asks for."""
        return QSize(600, self.height_of(self._look.lines))

    def minimumSizeHint(self) -> QSize:
        return QSize(160, self.height_of(1))

    # ------------------------------------------------------------ what is shown

    @property
    def _lines(self) -> tuple[Line, ...]:
        return tuple(line for line in self._subtitles.lines if self._gone.get(line.key) != line)

    @property
    def _source_height(self) -> float:
        return 0.0 if self._source is None else self._source.pitch + GAP

    @property
    def _height(self) -> float:
        """Of the part with the subtitles, in pixels."""
        return self.height() - self._source_height

    def _make_layouts(self) -> None:
        look = self._look
        self._layout = CaptionLayout(look)
        self._source: CaptionLayout | None = None
        if look.source_line:
            quiet = replace(look, stable=look.quiet)
            self._source = CaptionLayout(quiet, look.source_font, lambda line: line.source_runs)
        self._pitch = self._layout.pitch

    def _changed(self, line: Line | None) -> None:
        if self._gone:
            here = {shown.key for shown in self._subtitles.lines}
            self._gone = {key: gone for key, gone in self._gone.items() if key in here}
        self._stay()
        if self.isVisible():
            self._follow()
        self.update()
        if line is not None and line.final:
            self.setAccessibleDescription(line.stable)
            if QAccessible.isActive():
                QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, line.stable))

    def _follow(self) -> None:
        """Lay out what is new, and scroll to it."""
        before = self._layout.bottom
        self._layout.set_width(float(self.width()))
        self._layout.arrange(self._lines, self._height)
        if self._layout.pitch != self._pitch:
            self._pitch = self._layout.pitch
            self.updateGeometry()
            self.grew.emit()
        new_rows = self._layout.bottom - before
        if before and new_rows > 0:
            self._scroll_from(self._shift + new_rows * self._pitch)
        elif new_rows < 0:
            self._scroll_from(0.0)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setOpacity(self._opacity)
        lines, width = self._lines, float(self.width())
        if self._source is not None:
            self._source.set_width(width)
            self._source.paint(painter, lines, self._source.pitch)
            painter.translate(0, self._source_height)
        self._layout.set_width(width)
        painter.setClipRect(QRectF(0, 0, width, self._height + 2))
        self._layout.paint(painter, lines, self._height, self._shift)
        painter.end()

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._scroll_from(0.0)
        super().resizeEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        self._scroll_from(0.0)
        super().hideEvent(event)

    # ------------------------------------------------------------ movement

    def _animation(self, duration_ms: int, curve: QEasingCurve.Type) -> QVariantAnimation:
        made = QVariantAnimation(self)
        made.setDuration(duration_ms)
        made.setEasingCurve(curve)
        return made

    def _scroll_from(self, shift: float) -> None:
        self._scroll.stop()
        self._shift = 0.0
        if 0 < shift < max(2, self.rows) * self._pitch and self._look.smooth:
            self._shift = shift
            self._scroll.setStartValue(shift)
            self._scroll.setEndValue(0.0)
            self._scroll.start()

    def _scrolled(self, shift: float) -> None:
        self._shift = float(shift)
        self.update()

    def _stay(self) -> None:
        """Something happened: show all of it, and count the time of silence anew."""
        self._rest()
        if self._linger_s is not None and not self._speech and self._lines:
            self._quiet.start(round(1000 * self._linger_s))

    def _rest(self) -> None:
        self._quiet.stop()
        if self._fade.state() is QVariantAnimation.State.Running:
            self._fade.stop()
        if self._opacity != 1.0:
            self._opacity = 1.0
            self.update()

    def _begin_fade(self) -> None:
        if not self._look.smooth:
            self._vanish()
            return
        self._fade.setStartValue(1.0)
        self._fade.setEndValue(0.0)
        self._fade.start()

    def _faded(self, opacity: float) -> None:
        self._opacity = float(opacity)
        self.update()

    def _vanish(self) -> None:
        """What was there is gone until it changes."""
        self._gone = {line.key: line for line in self._subtitles.lines}
        self._opacity = 1.0
        self._layout.forget()
        self.update()
