"""About: which program this is, its licence, and the notices and licences of everything that is not ours."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QLabel, QTextBrowser, QVBoxLayout, QWidget

from app.i18n import translate
from app.version import program_line, window_line
from app.widgets.icons import program_icon
from app.widgets.preset_card import plain_label
from engine.presets import resources

ICON = 64


class AboutDialog(QDialog):
    """Links in the notices open in the browser."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.version = plain_label(f"{program_line()}\n{window_line()}")
        self.text = plain_label()
        self.notices = QTextBrowser()
        self.notices.setOpenExternalLinks(True)
        self.notices.setMarkdown((resources() / "NOTICES.md").read_text(encoding="utf-8"))
        self.notices.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        picture = QLabel()
        picture.setPixmap(program_icon().pixmap(QSize(ICON, ICON)))
        words = QVBoxLayout()
        words.addWidget(self.version)
        words.addWidget(self.text)
        top = QHBoxLayout()
        top.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(words, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        column = QVBoxLayout(self)
        column.addLayout(top)
        column.addWidget(self.notices, 1)
        column.addWidget(buttons)
        self.resize(640, 560)
        self.retranslate()

    def retranslate(self) -> None:
        """Words in the interface's language; the notices are the legal text and stay as they are."""
        self.setWindowTitle(translate("About", "About Surtitle"))
        self.text.setText(
            translate(
                "About",
                "Live translated subtitles on your own machine. Nothing leaves it. The program is under the Apache"
                " License 2.0; models and recordings have terms of their own:",
            )
        )
        self.notices.setAccessibleName(translate("About", "Notices and licences of others"))

    def changeEvent(self, event: QEvent) -> None:
        if event.type() is QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)
