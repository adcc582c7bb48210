"""The engine's page, driven by the events of an engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.controller import Controller
from app.engine_report import EngineReport, diagnostics, tail
from app.files import log_folder
from app.playback import FileSource
from app.status import Phase, Status
from app.widgets.engine_status import EngineDialog
from engine.messages import Activity, Caption, Configure, Health, Loading, Ready
from tests.app.leaks import throw_away


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def controller() -> Controller:
    return Controller(Configure("laptop", "en", "de"), lambda: FileSource(Path("none.wav")))


@pytest.fixture
def report(controller: Controller, clock: Clock) -> EngineReport:
    return EngineReport(controller, clock)


@pytest.fixture
def dialog(qtbot: QtBot, report: EngineReport) -> Iterator[EngineDialog]:
    made = EngineDialog(report)
    made.show()
    yield made
    made.detach()
    made.hide()
    throw_away(made)


def show(controller: Controller, status: Status) -> None:
    controller.status = status
    controller.changed.emit(status)


def test_what_one_session_lacked_is_not_said_of_the_next(controller: Controller, dialog: EngineDialog) -> None:
    show(controller, Status(Phase.LISTENING))
    controller.engine.events.emit(Health("translator", "fallback_policy", "Rows are missing."))
    assert "Rows are missing." in dialog.health.text()
    show(controller, Status(Phase.READY))
    assert "Rows are missing." in dialog.health.text()
    show(controller, Status(Phase.LISTENING))
    assert "Rows are missing." not in dialog.health.text()


def test_loading_by_model_with_what_remains(controller: Controller, dialog: EngineDialog, clock: Clock) -> None:
    events = controller.engine.events
    show(controller, Status(Phase.LOADING, "starting the engine", 0.0))
    events.emit(Loading("recogniser", 0.01, "Loading whisper"))
    assert not dialog.rest.isVisible(), "nobody can tell yet"
    clock.now_s = 5.0
    events.emit(Loading("recogniser", 0.25, "Warming up whisper"))
    assert dialog.models["recogniser"].value() == 50
    assert dialog.rest.text() == "About 15 s left"
    events.emit(Loading("translator", 0.75, "Loading gemma"))
    assert (dialog.models["recogniser"].value(), dialog.models["translator"].value()) == (100, 50)
    events.emit(Ready("laptop", "en", "de", {"model": "gemma"}))
    show(controller, Status(Phase.READY))
    assert dialog.models["translator"].value() == 100
    assert not dialog.rest.isVisible()


def test_lag_is_explained_and_something_is_suggested(
    controller: Controller, dialog: EngineDialog, clock: Clock
) -> None:
    show(controller, Status(Phase.LISTENING))
    for second in range(60):
        clock.now_s = float(second)
        controller.engine.events.emit(Activity(float(second), second - 4.0, True, second * 0.1))
    text = dialog.lag.text()
    assert text.startswith("5.9 s behind the voice. It is growing.")
    assert "smaller recogniser" in text
    assert dialog.curve.grab().toImage().width() > 0
    show(controller, Status(Phase.READY))
    show(controller, Status(Phase.LISTENING))
    assert dialog.lag.text() == "0.0 s behind the voice.", "a new session begins anew"


def test_health_is_shown_until_it_is_well_again(controller: Controller, dialog: EngineDialog) -> None:
    assert dialog.health.text() == "Nothing is wrong."
    controller.engine.events.emit(Health("translator", "fallback_policy", "Rows are missing.", {"missing": 3}))
    assert dialog.health.text() == "Translator: Rows are missing. (missing 3)"
    controller.engine.events.emit(Health("translator", "ok", ""))
    assert dialog.health.text() == "Nothing is wrong."


def test_restart_asks(controller: Controller, dialog: EngineDialog, qtbot: QtBot) -> None:
    show(controller, Status(Phase.ENGINE_STOPPED, "The engine crashed (SIGSEGV); restart it to go on."))
    assert "SIGSEGV" in dialog.state.text()
    with qtbot.waitSignal(dialog.restart):
        dialog.again.click()
    show(controller, Status(Phase.LISTENING))
    assert not dialog.again.isEnabled(), "not in the middle of a session"


def test_the_log_is_followed(dialog: EngineDialog) -> None:
    assert "no log yet" in dialog.log.text.toPlainText()
    log_folder().mkdir(parents=True, exist_ok=True)
    path = log_folder() / "engine.log"
    path.write_text("first\n<b>second</b>\n", encoding="utf-8")
    dialog.refresh()
    assert dialog.log.text.toPlainText() == "first\n<b>second</b>\n"
    path.write_bytes(b"x" * 100_000 + b"\n" + b"\xff broken\n" + b"line\n" * 10)
    assert tail(path, 60).endswith("line\n")
    assert not tail(path, 60).startswith("x")
    dialog.refresh()
    assert dialog.log.text.toPlainText().endswith("line\n")
    assert "cannot be read" in tail(path.with_name("none.log"))


def test_diagnostics_hold_what_matters_and_nothing_that_was_said(
    controller: Controller, dialog: EngineDialog, report: EngineReport
) -> None:
    log_folder().mkdir(parents=True, exist_ok=True)
    (log_folder() / "app.log").write_text(f"opened {Path.home()}/talk.wav\n", encoding="utf-8")
    controller.subtitles.apply(Caption(0, "Geheimnis", "", "secret", "", None, False, "t", 0, 1, 1, 1))
    controller.engine.events.emit(Caption(0, "Geheimnis", "", "secret", "", None, False, "t", 0, 1, 1, 1, {"mt_ms": 9}))
    show(controller, Status(Phase.LISTENING))
    controller.engine.events.emit(Health("translator", "fallback_policy", "Rows are missing."))
    show(controller, Status(Phase.LISTENING, notices=("Look out.",)))
    dialog.copy.click()
    text = QGuiApplication.clipboard().text()
    assert text == diagnostics(report)
    for piece in ("Surtitle", "Python 3.", "listening", "Look out.", "Rows are missing.", "opened ~/talk.wav"):
        assert piece in text
    for secret in ("Geheimnis", "secret", str(Path.home()) + "/"):
        assert secret not in text


def test_everything_has_a_name(dialog: EngineDialog) -> None:
    for widget in (dialog.state, dialog.lag, dialog.curve, dialog.health, dialog.log.text, dialog.log.choice):
        assert widget.accessibleName()
    dialog.hide()
    assert not dialog._timer.isActive(), "nothing runs while nobody looks"
