"""The first start of a packaged program: what will be downloaded, how far it is, what went wrong in one sentence."""

from __future__ import annotations

import logging
import sys
import threading

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QDialogButtonBox,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app import engine_packages
from app.engine_packages import Bundle, Cancelled
from app.errors import UserError
from app.files import settings_file
from app.i18n import translate, use_language
from app.settings import load_settings
from app.widgets.icons import program_icon
from app.widgets.look import use_theme
from app.widgets.preset_card import plain_label
from app.widgets.sentences import say

log = logging.getLogger(__name__)

STEPS = 1000


class FirstStartDialog(QDialog):
    """Asks, installs on a thread of its own and accepts itself when the engine is there.

    Closing or cancelling stops the installation, which keeps what was downloaded.
    """

    _told = Signal(float, str)
    _ended = Signal(str)

    def __init__(self, bundle: Bundle, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._bundle, self._stop = bundle, threading.Event()
        self._worker: threading.Thread | None = None
        self.setWindowIcon(program_icon())
        self.setWindowTitle(translate("FirstStart", "Surtitle: first start"))
        self.text = plain_label(
            translate(
                "FirstStart",
                "The recogniser and the translator are not on this machine yet. They are downloaded once from the"
                " Python package index; nothing of what you say will ever leave the machine.",
            )
        )
        self.plan = QPlainTextEdit("\n".join(engine_packages.plan(bundle)))
        self.plan.setReadOnly(True)
        self.plan.setAccessibleName(translate("FirstStart", "What will be done"))
        self.bar, self.state, self.problem = QProgressBar(), plain_label(), plain_label()
        self.bar.setRange(0, STEPS)
        self.bar.setAccessibleName(translate("FirstStart", "Progress"))
        self.install = QPushButton(translate("FirstStart", "&Download and install"))
        self.install.setDefault(True)
        self.leave = QPushButton(translate("FirstStart", "&Not now"))
        buttons = QDialogButtonBox()
        buttons.addButton(self.install, QDialogButtonBox.ButtonRole.ActionRole)
        buttons.addButton(self.leave, QDialogButtonBox.ButtonRole.RejectRole)
        column = QVBoxLayout(self)
        for widget in (self.text, self.plan, self.bar, self.state, self.problem, buttons):
            column.addWidget(widget, int(widget is self.plan))
        self.problem.setVisible(False)
        self.install.clicked.connect(self._begin)
        self.leave.clicked.connect(self.reject)
        self._told.connect(self._show, Qt.ConnectionType.QueuedConnection)
        self._ended.connect(self._end, Qt.ConnectionType.QueuedConnection)
        self.resize(560, 480)

    def reject(self) -> None:
        """Stop what runs, then close."""
        if self._worker is None:
            super().reject()
            return
        self._stop.set()
        self.leave.setEnabled(False)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self._worker is not None:
            event.ignore()
            self.reject()
            return
        super().closeEvent(event)

    def _begin(self) -> None:
        self._stop.clear()
        self.problem.setVisible(False)
        self.install.setEnabled(False)
        self._worker = threading.Thread(target=self._work, name="engine packages")
        self._worker.start()

    def _work(self) -> None:
        try:
            engine_packages.install(self._bundle, self._told.emit, self._stop)
        except Cancelled:
            self._ended.emit("cancelled")
        except UserError as error:
            self._ended.emit(str(error))
        except Exception as error:
            log.exception("The engine could not be installed.")
            self._ended.emit(f"The engine could not be installed ({type(error).__name__}): the log has the details.")
        else:
            self._ended.emit("")

    def _show(self, fraction: float, text: str) -> None:
        self.bar.setValue(round(fraction * STEPS))
        self.state.setText(text)

    def _end(self, problem: str) -> None:
        assert self._worker is not None
        self._worker.join()
        self._worker = None
        if not problem:
            self.accept()
            return
        if self._stop.is_set():
            super().reject()
            return
        self.install.setEnabled(True)
        self.problem.setText(f"⚠ {say(problem)}")
        self.problem.setVisible(True)


def install_in_window(bundle: Bundle) -> None:
    """Show the dialog until the engine is there. Raises `UserError` when the person has closed it before."""
    app = QApplication.instance()
    if not isinstance(app, QApplication):
        app = QApplication(sys.argv[:1])
    app.setApplicationName("Surtitle")
    look = load_settings(settings_file())[0].window
    use_language(look.language)
    use_theme(look.theme)
    dialog = FirstStartDialog(bundle)
    try:
        accepted = dialog.exec() == QDialog.DialogCode.Accepted
    finally:
        dialog.deleteLater()
        QTimer.singleShot(0, app.quit)
        app.exec()  # what was to be deleted is deleted before the window comes
    if not accepted:
        raise UserError("Surtitle has no engine yet: start it again to install it, or run `surtitle setup`.")
