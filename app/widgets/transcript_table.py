"""The lines of a session as a table that stays quick however long it is: only what is on screen is laid out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPointF,
    QSize,
    Qt,
    QTimer,
)
from PySide6.QtGui import QColor, QPainter, QPalette, QResizeEvent, QTextCharFormat, QTextLayout, QTextOption
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.export.text import clean, right_to_left
from app.i18n import translate
from app.reading import CHANGED, INSERTED, Change, Reading, clock

TIME, SOURCE, TARGET = range(3)
PADDING = 6
MOST_HEIGHT = 600  # pixels of one row; a longer text is cut here, and copied whole
MARK = "★"
_FOUND = QColor("#ffd54a")
AnyIndex = QModelIndex | QPersistentModelIndex


class TranscriptTable(QAbstractTableModel):
    """Qt's view of a `Reading`."""

    def __init__(self, reading: Reading, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.reading = reading
        self._count = len(reading.rows)
        self._leave: Callable[[], None] = reading.changed.subscribe(self._changed)

    def detach(self) -> None:
        """Stop listening to the reading."""
        self._leave()

    def rowCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008 - Qt's own signature
        return 0 if parent.isValid() else self._count

    def columnCount(self, parent: AnyIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else 3

    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid() or index.row() >= len(self.reading.rows):
            return None
        row = self.reading.rows[index.row()]
        marked = self.reading.marked(index.row())
        if role == Qt.ItemDataRole.DisplayRole:
            if index.column() == TIME:
                return f"{clock(row.start_s)} {MARK}" if marked else clock(row.start_s)
            return clean(row.source if index.column() == SOURCE else row.target)
        if role == Qt.ItemDataRole.AccessibleTextRole and index.column() == TIME:
            words = translate("Transcript", "bookmarked")
            return f"{clock(row.start_s)}, {words}" if marked else clock(row.start_s)
        return None

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if orientation is not Qt.Orientation.Horizontal or role != Qt.ItemDataRole.DisplayRole:
            return None
        return (
            translate("Transcript", "Time"),
            translate("Transcript", "What was heard"),
            translate("Transcript", "Translation"),
        )[section]

    def _changed(self, change: Change) -> None:
        if change.kind == INSERTED:
            self.beginInsertRows(QModelIndex(), change.row, change.row)
            self._count += 1
            self.endInsertRows()
        elif change.kind == CHANGED:
            self.dataChanged.emit(self.index(change.row, TIME), self.index(change.row, TARGET))
        else:
            self.beginResetModel()
            self._count = len(self.reading.rows)
            self.endResetModel()


class TextDelegate(QStyledItemDelegate):
    """Plain text, wrapped, in its own direction, with what is searched for marked."""

    needle = ""

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        self.initStyleOption(option, index)
        text, option.text = option.text, ""
        style = option.widget.style()
        style.drawControl(QStyle.ControlElement.CE_ItemViewItem, option, painter, option.widget)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        role = QPalette.ColorRole.HighlightedText if selected else QPalette.ColorRole.Text
        layout = self._layout(text, option, self._formats(text))
        painter.save()
        painter.setClipRect(option.rect)
        painter.setPen(option.palette.color(role))
        layout.draw(painter, QPointF(option.rect.topLeft()) + QPointF(PADDING, PADDING / 2))
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        self.initStyleOption(option, index)
        layout = self._layout(option.text, option, [])
        height = layout.boundingRect().height()
        return QSize(option.rect.width(), min(MOST_HEIGHT, round(height) + PADDING))

    def _layout(self, text: str, option: QStyleOptionViewItem, formats: list[QTextLayout.FormatRange]) -> QTextLayout:
        layout = QTextLayout(text, option.font)
        how = QTextOption()
        how.setWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        how.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
        how.setAlignment(Qt.AlignmentFlag.AlignRight if right_to_left(text) else Qt.AlignmentFlag.AlignLeft)
        layout.setTextOption(how)
        layout.setFormats(formats)
        width, y = max(20, option.rect.width() - 2 * PADDING), 0.0
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            line.setPosition(QPointF(0, y))
            y += line.height()
            if y > MOST_HEIGHT:
                break
        layout.endLayout()
        return layout

    def _formats(self, text: str) -> list[QTextLayout.FormatRange]:
        ranges: list[QTextLayout.FormatRange] = []
        if not self.needle:
            return ranges
        lower, wanted = text.lower(), self.needle.lower()
        # lower case may have another length than the text ("İ"): then nothing is marked rather than the wrong place
        start = lower.find(wanted) if len(lower) == len(text) else -1
        while start >= 0:
            found = QTextLayout.FormatRange()
            # Qt counts in UTF-16
            found.start = len(text[:start].encode("utf-16-le")) // 2
            found.length = len(text[start : start + len(wanted)].encode("utf-16-le")) // 2
            style = QTextCharFormat()
            style.setBackground(_FOUND)
            style.setForeground(QColor("black"))
            found.format = style
            ranges.append(found)
            start = lower.find(wanted, start + len(wanted))
        return ranges


class TranscriptView(QTableView):
    """Heights are found for the rows on screen only, whenever those change."""

    def __init__(self) -> None:
        super().__init__()
        self.text = TextDelegate(self)
        self.setItemDelegate(self.text)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerItem)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setAlternatingRowColors(True)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(self.fontMetrics().height() + PADDING)
        self.verticalHeader().setMinimumSectionSize(self.fontMetrics().height() + PADDING)
        self.horizontalHeader().setHighlightSections(False)
        self._at_end = True
        self._pending = QTimer(self)
        self._pending.setSingleShot(True)
        self._pending.setInterval(0)
        self._pending.timeout.connect(self.fit)
        self.verticalScrollBar().valueChanged.connect(lambda _: self._pending.start())
        self.horizontalHeader().sectionResized.connect(lambda *_: self._pending.start())

    def show_table(self, table: TranscriptTable) -> None:
        """Show this from now on, and follow it while the last line is on screen."""
        self.setModel(table)
        header = self.horizontalHeader()
        for column in (SOURCE, TARGET):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(TIME, QHeaderView.ResizeMode.Fixed)
        self.setColumnWidth(TIME, self.fontMetrics().horizontalAdvance(f"00:00:00 {MARK}") + 4 * PADDING)
        table.dataChanged.connect(lambda *_: self._pending.start())
        table.modelReset.connect(self._pending.start)
        table.rowsAboutToBeInserted.connect(self._note_end)
        table.rowsInserted.connect(self._follow)
        self._pending.start()

    def fit(self) -> None:
        """Give the rows on screen the height they need."""
        model = self.model()
        if model is None or not model.rowCount():
            return
        row, room = max(0, self.rowAt(0)), self.viewport().height()
        while row < model.rowCount() and room > 0:
            self.resizeRowToContents(row)
            room -= self.rowHeight(row)
            row += 1

    def go_to(self, row: int) -> None:
        """Select a row and bring it to the middle."""
        index = self.model().index(row, TARGET)
        how = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        self.selectionModel().setCurrentIndex(index, how)  # also while a key that extends selections is down
        self.scrollTo(index, QAbstractItemView.ScrollHint.PositionAtCenter)
        self._pending.start()

    def selected_rows(self) -> list[int]:
        """Rows that are selected, in order."""
        return sorted({index.row() for index in self.selectionModel().selectedRows()}) if self.model() else []

    def _note_end(self) -> None:
        bar = self.verticalScrollBar()
        self._at_end = bar.value() >= bar.maximum() - 1

    def _follow(self) -> None:
        if self._at_end:
            self.scrollToBottom()
        self._pending.start()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._pending.start()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._pending.start()
