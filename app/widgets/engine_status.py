"""The engine's page: loading by model, lag with its reason, health of the capture, restart, log, diagnostics."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QFontDatabase,
    QGuiApplication,
    QHideEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPolygonF,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QFormLayout,
    QGroupBox,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.engine_report import EngineReport, diagnostics, log_files, tail
from app.files import log_folder
from app.i18n import fill, translate
from app.lag import KEPT_S, Cause, Judgement
from app.widgets.sentences import say, state_line

REFRESH_MS = 1000  # while it is on screen
LOG_ROWS = 2000


def stage_name(stage: str) -> str:
    """What a part of the engine is called."""
    match stage:
        case "recogniser":
            return translate("Engine", "Recogniser")
        case "translator":
            return translate("Engine", "Translator")
    return stage.capitalize()


def lag_text(judgement: Judgement) -> str:
    """How far behind, why, and what can be done about it."""
    head = fill(translate("Engine", "{seconds:.1f} s behind the voice."), seconds=judgement.lag_s)
    match judgement.cause:
        case Cause.NONE:
            return head
        case Cause.RECOGNISER:
            why = fill(
                translate("Engine", "{seconds:.1f} s of sound wait to be recognised: the machine is too slow."),
                seconds=judgement.backlog_s,
            )
            advice = translate("Engine", "Close other programs, or choose a preset with a smaller recogniser.")
        case Cause.TRANSLATOR:
            why = fill(translate("Engine", "One translation takes {seconds:.1f} s."), seconds=judgement.draft_ms / 1000)
            advice = translate("Engine", "Close other programs, or choose a preset with a smaller translator.")
        case Cause.GRAMMAR:
            why = translate("Engine", "The translation waits for words that have not been said yet; nothing is slow.")
            advice = translate("Engine", "It catches up when the sentence goes on.")
    grows = translate("Engine", "It is growing.") + " " if judgement.growing else ""
    return f"{head} {grows}{why} {advice}"


class LagCurve(QWidget):
    """Lag over the last two minutes."""

    def __init__(self, report: EngineReport) -> None:
        super().__init__()
        self._report = report
        self.setMinimumHeight(48)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def paintEvent(self, event: QPaintEvent) -> None:
        curve = self._report.lag.curve
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Mid), 1))
        area = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        if len(curve) > 1:
            now_s, most_s = curve[-1][0], max(5.0, *(lag for _, lag in curve))
            across, up = area.width() / KEPT_S, area.height() / most_s
            points = [QPointF(area.right() - across * (now_s - at), area.bottom() - up * lag) for at, lag in curve]
            painter.setPen(QPen(self.palette().color(QPalette.ColorRole.Highlight), 2))
            painter.drawPolyline(QPolygonF(points))
        painter.end()


class LogView(QWidget):
    """The end of the logs, newest line at the bottom; it follows while it is scrolled down."""

    def __init__(self) -> None:
        super().__init__()
        self.choice, self.text = QComboBox(), QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setMaximumBlockCount(LOG_ROWS)
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.text.setMinimumHeight(120)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.choice)
        column.addWidget(self.text, 1)
        self.choice.currentIndexChanged.connect(self.refresh)

    def refresh(self) -> None:
        """Read again what is in the files."""
        paths = {path.name: path for path in log_files()}
        there = [self.choice.itemText(row) for row in range(self.choice.count())]
        if there != list(paths):
            self.choice.blockSignals(True)
            self.choice.clear()
            self.choice.addItems(list(paths))
            self.choice.blockSignals(False)
        path = paths.get(self.choice.currentText())
        content = tail(path) if path else translate("Engine", "There is no log yet.")
        if content == self.text.toPlainText():
            return
        bar = self.text.verticalScrollBar()
        follows, at = bar.value() >= bar.maximum() - 2, bar.value()
        self.text.setPlainText(content)
        bar.setValue(bar.maximum() if follows else at)


class EngineDialog(QDialog):
    """Stays open beside the subtitles. `restart`: the engine is to be started anew."""

    restart = Signal()

    def __init__(self, report: EngineReport, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report = report
        self.resize(640, 620)
        self.state, self.lag, self.health, self.rest = (_label() for _ in range(4))
        self.models: dict[str, QProgressBar] = {}
        self.curve, self.log = LagCurve(report), LogView()
        self.again, self.copy, self.folder = QPushButton(), QPushButton(), QPushButton()
        self.again.clicked.connect(self.restart)
        self.copy.clicked.connect(self._copy)
        self.folder.clicked.connect(_show_folder)
        self._timer = QTimer(self)
        self._timer.setInterval(REFRESH_MS)
        self._timer.timeout.connect(self.refresh)
        self._arrange()
        self.retranslate()
        self._leave = report.changed.subscribe(lambda _: self._show_state() if self.isVisible() else None)

    def detach(self) -> None:
        """Stop listening, before it is thrown away."""
        self._leave()
        self._timer.stop()

    def refresh(self) -> None:
        """Show how things are now."""
        self._show_state()
        self.log.refresh()

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.setWindowTitle(translate("Engine", "Engine and log"))
        self._boxes["state"].setTitle(translate("Engine", "State"))
        self._boxes["lag"].setTitle(translate("Engine", "Behind the voice"))
        self._boxes["health"].setTitle(translate("Engine", "Attention capture"))
        self._boxes["log"].setTitle(translate("Engine", "Log"))
        self.again.setText(translate("Engine", "&Restart the engine"))
        self.copy.setText(translate("Engine", "&Copy diagnostics"))
        self.copy.setToolTip(
            translate("Engine", "Versions, state and log for a report of a fault; nothing that was said.")
        )
        self.folder.setText(translate("Engine", "Open the &folder of the logs"))
        for widget, name in (
            (self.state, translate("Engine", "State")),
            (self.rest, translate("Engine", "Remaining time")),
            (self.lag, translate("Engine", "Behind the voice")),
            (self.curve, translate("Engine", "Lag over the last two minutes")),
            (self.health, translate("Engine", "Attention capture")),
            (self.log.text, translate("Engine", "Log")),
            (self.log.choice, translate("Engine", "Which log")),
        ):
            widget.setAccessibleName(name)
        self._show_state()

    def _arrange(self) -> None:
        self._boxes = {name: QGroupBox() for name in ("state", "lag", "health", "log")}
        self._loading = QFormLayout()
        top = QHBoxLayout()
        top.addWidget(self.state, 1)
        top.addWidget(self.again, 0, Qt.AlignmentFlag.AlignTop)
        state = QVBoxLayout(self._boxes["state"])
        state.addLayout(top)
        state.addLayout(self._loading)
        state.addWidget(self.rest)
        for name, widgets in (("lag", (self.lag, self.curve)), ("health", (self.health,)), ("log", (self.log,))):
            inside = QVBoxLayout(self._boxes[name])
            for widget in widgets:
                inside.addWidget(widget)
        buttons = QHBoxLayout()
        buttons.addWidget(self.copy)
        buttons.addWidget(self.folder)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        for name, box in self._boxes.items():
            column.addWidget(box, 1 if name == "log" else 0)
        column.addLayout(buttons)

    def _show_state(self) -> None:
        report = self._report
        self.state.setText(state_line(report.status))
        self.again.setEnabled(report.status.can_restart or not report.status.phase.running)
        for stage in report.stages:
            bar = self.models.get(stage.name) or self._bar(stage.name)
            bar.setValue(round(100 * stage.share))
            bar.setFormat(f"%p%  {say(stage.text)}" if stage.text else "%p%")
        remaining_s = report.remaining_s
        self.rest.setVisible(remaining_s is not None)
        if remaining_s is not None:
            self.rest.setText(fill(translate("Engine", "About {seconds:.0f} s left"), seconds=max(1.0, remaining_s)))
        self.lag.setText(lag_text(report.lag.judge()))
        self.curve.update()
        self.health.setText(self._health_text())

    def _health_text(self) -> str:
        if not self._report.degraded:
            return translate("Engine", "Nothing is wrong.")
        lines = []
        for health in self._report.degraded:
            counters = ", ".join(f"{name} {value}" for name, value in health.counters.items())
            line = f"{stage_name(health.component)}: {say(health.text)}"
            lines.append(f"{line} ({counters})" if counters else line)
        return "\n".join(lines)

    def _bar(self, stage: str) -> QProgressBar:
        bar = self.models[stage] = QProgressBar()
        bar.setAccessibleName(stage_name(stage))
        self._loading.addRow(stage_name(stage), bar)
        return bar

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(diagnostics(self._report))
        self.copy.setText(translate("Engine", "Copied"))

    # ------------------------------------------------------------ Qt's events

    def showEvent(self, event: QShowEvent) -> None:
        self.retranslate()
        self.refresh()
        self._timer.start()
        super().showEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        self._timer.stop()
        super().hideEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(640, 620)


def _label() -> QLabel:
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setTextInteractionFlags(
        Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
    )
    return label


def _show_folder() -> None:
    QDesktopServices.openUrl(QUrl.fromLocalFile(str(log_folder())))
