"""The export dialog: format, languages, line length, encoding, with a preview of what will be written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QEvent, QStandardPaths, Signal
from PySide6.QtGui import QFontDatabase
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QFormLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QVBoxLayout,
    QWidget,
)

from app.export.writer import DOCX, MARKED, preview
from app.i18n import fill, translate
from app.session_record import SessionRecord
from app.settings import ExportSettings
from app.widgets.preset_card import plain_label
from app.widgets.sentences import say

PREVIEW_UTTERANCES = 200  # of a long session the beginning shows enough
SUBTITLES = (".srt", ".vtt")
LEAST_COLUMNS, MOST_COLUMNS = 20, 80


class ExportDialog(QDialog):
    """`wanted` carries a path and the `ExportSettings`. It stays open until `show_result` says that all is well."""

    wanted = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._record: SessionRecord | None = None
        self._folder = ""
        self.format, self.what, self.columns = QComboBox(), QComboBox(), QSpinBox()
        self.columns.setRange(LEAST_COLUMNS, MOST_COLUMNS)
        self.mark = QCheckBox()
        self.note, self.about, self.outcome = plain_label(quiet=True), plain_label(quiet=True), plain_label()
        self.preview = QPlainTextEdit()
        self.preview.setReadOnly(True)
        self.preview.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.preview.setFont(QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont))
        self.save = QPushButton()
        self._labels = [QLabel(), QLabel(), QLabel()]
        self._arrange()
        self.retranslate()
        for box in (self.format, self.what):
            box.currentIndexChanged.connect(lambda _: self._refresh())
        self.columns.valueChanged.connect(lambda _: self._refresh())
        self.save.clicked.connect(self._ask_path)

    # ------------------------------------------------------------ what it is told

    def show_session(self, record: SessionRecord | None, choices: ExportSettings, running: bool = False) -> None:
        """The session to export, as it is now, and what was chosen the last time."""
        self._record, self._folder = record, choices.folder
        self.format.setCurrentIndex(self.format.findData(choices.format))
        self.what.setCurrentIndex(self.what.findData(choices.what))
        self.columns.setValue(choices.columns)
        self.mark.setChecked(choices.byte_order_mark)
        about = ""
        if record is not None and running:
            about = translate(
                "Export", "The session is running: what is stable now is written; export again at its end."
            )
        elif record is not None and not record.ended:
            about = translate("Export", "The session was interrupted: everything that was stable is here.")
        if record is not None and record.damaged_lines:
            damaged = fill(translate("Export", "{count} damaged lines were left out."), count=record.damaged_lines)
            about = f"{about} {damaged}".strip()
        self.about.setText(about)
        self.about.setVisible(bool(about))
        self.show_result("", good=False)
        self._refresh()

    def show_result(self, sentence: str, *, good: bool) -> None:
        """What became of the export; a good one closes the dialog."""
        self.outcome.setText("" if good or not sentence else f"⚠ {say(sentence)}")
        self.outcome.setVisible(bool(self.outcome.text()))
        if good:
            self.accept()

    @property
    def choices(self) -> ExportSettings:
        """What is chosen."""
        return ExportSettings(
            format=self.format.currentData(),
            what=self.what.currentData(),
            columns=self.columns.value(),
            byte_order_mark=self.mark.isChecked(),
            folder=self._folder,
        )

    def suggested_path(self) -> Path:
        """Where the file dialog begins: the folder of the last export, and the session's name."""
        documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
        folder = Path(self._folder) if self._folder and Path(self._folder).is_dir() else Path(documents or Path.home())
        name = self._record.session_id if self._record else "session"
        what = self.what.currentData()
        language = ""
        if self._record is not None and what != "both":
            language = self._record.source_lang if what == "source" else self._record.target_lang
        return folder / f"{name}{f'.{language}' if language else ''}{self.format.currentData()}"

    # ------------------------------------------------------------ parts

    def _arrange(self) -> None:
        form = QFormLayout()
        for label, field in zip(self._labels, (self.format, self.what, self.columns), strict=True):
            label.setBuddy(field)
            form.addRow(label, field)
        form.addRow("", self.mark)
        buttons = QDialogButtonBox()
        buttons.addButton(self.save, QDialogButtonBox.ButtonRole.AcceptRole)
        close = buttons.addButton(QDialogButtonBox.StandardButton.Cancel)
        close.clicked.connect(self.reject)
        self.save.setDefault(True)
        column = QVBoxLayout(self)
        column.addLayout(form)
        column.addWidget(self.note)
        column.addWidget(self.about)
        column.addWidget(self.preview, 1)
        column.addWidget(self.outcome)
        column.addWidget(buttons)
        self.resize(620, 560)

    def _refresh(self) -> None:
        suffix = self.format.currentData()
        if suffix is None:
            return
        self._labels[2].setEnabled(suffix in SUBTITLES)
        self.columns.setEnabled(suffix in SUBTITLES)
        self.what.setEnabled(suffix != ".jsonl")
        self.mark.setEnabled(suffix in MARKED)
        self.note.setText(self._encoding_note(suffix))
        there = self._record is not None and self._record.has_text
        self.save.setEnabled(self._record is not None)
        if not there or self._record is None:
            self.preview.setPlainText(translate("Export", "(Nothing was said in this session.)"))
            return
        part = _beginning(self._record)
        text = preview(part, suffix, self.what.currentData(), self.columns.value())
        self.preview.setPlainText(text if part is self._record else text + "\n…")

    def _encoding_note(self, suffix: str) -> str:
        if suffix == DOCX:
            return translate("Export", "For word processors: a table with times. The preview shows its text.")
        if suffix == ".jsonl":
            return translate("Export", "For programs: UTF-8, one object a line with both languages and milliseconds.")
        return translate(
            "Export", "The file is UTF-8. If a program shows wrong letters in it, write the byte-order mark, too."
        )

    def _ask_path(self) -> None:
        dialog = QFileDialog(self, translate("Export", "Save the export"), str(self.suggested_path()))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(f"{self.format.currentText()} (*{self.format.currentData()})")
        dialog.setDefaultSuffix(self.format.currentData())
        dialog.fileSelected.connect(lambda name: self.write_to(Path(name)))
        dialog.open()

    def write_to(self, path: Path) -> None:
        """Ask for the export to this file; the suffix of the chosen format is added where it is missing."""
        suffix = self.format.currentData()
        if path.suffix.lower() != suffix:
            path = path.with_name(path.name + suffix)
        self._folder = str(path.parent)
        self.wanted.emit(path, self.choices)

    def retranslate(self) -> None:
        """Words in the interface's language."""
        self.setWindowTitle(translate("Export", "Export"))
        formats = {
            ".srt": translate("Export", "SubRip subtitles"),
            ".vtt": translate("Export", "WebVTT subtitles"),
            ".txt": translate("Export", "Plain text"),
            DOCX: translate("Export", "Word document"),
            ".jsonl": translate("Export", "JSON lines"),
        }
        whats = {
            "target": translate("Export", "Translation"),
            "source": translate("Export", "What was heard"),
            "both": translate("Export", "Both"),
        }
        _fill(self.format, formats)
        _fill(self.what, whats)
        texts = (
            translate("Export", "&Format"),
            translate("Export", "&Text"),
            translate("Export", "Longest &line"),
        )
        for label, text, field in zip(self._labels, texts, (self.format, self.what, self.columns), strict=True):
            label.setText(text)
            field.setAccessibleName(text.replace("&", ""))
        self.columns.setSuffix(translate("Export", " columns"))
        self.mark.setText(translate("Export", "Write a byte-order &mark"))
        self.preview.setAccessibleName(translate("Export", "Preview"))
        self.save.setText(translate("Export", "&Save as…"))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)


def _beginning(record: SessionRecord) -> SessionRecord:
    if len(record.utterances) <= PREVIEW_UTTERANCES:
        return record
    return replace(record, utterances=record.utterances[:PREVIEW_UTTERANCES])


def _fill(box: QComboBox, texts: dict[str, str]) -> None:
    chosen = box.currentData()
    box.blockSignals(True)
    box.clear()
    for data, text in texts.items():
        box.addItem(text, data)
    box.setCurrentIndex(max(0, box.findData(chosen)))
    box.blockSignals(False)
