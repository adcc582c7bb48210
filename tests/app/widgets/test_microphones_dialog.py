"""The microphone dialog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.devices import InputDevice
from app.mic_check import IDLE, LISTENING, PLAYING, RECORDED, RECORDING
from app.widgets.microphones_dialog import KEY, MicrophonesDialog

DEVICES = [
    InputDevice(1, "PulseAudio", "Blue <b>Yeti</b>\nStereo", 2, 48_000, False, "yeti"),
    InputDevice(1, "PulseAudio", "Monitor of Built-in Audio", 2, 48_000, False, "out.monitor", True),
]


@pytest.fixture
def dialog(qtbot: QtBot) -> Iterator[MicrophonesDialog]:
    made = MicrophonesDialog()
    made.show_devices(DEVICES, None)
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.hide()
    made.deleteLater()


def rows(dialog: MicrophonesDialog) -> list[str]:
    return [dialog.list.item(row).text() for row in range(dialog.list.count())]


def test_the_default_and_every_device_are_there(dialog: MicrophonesDialog) -> None:
    assert rows(dialog) == [
        "The system's default microphone",
        "Blue <b>Yeti</b> Stereo\nPulseAudio",
        "Monitor of Built-in Audio\nwhat this computer plays",
    ]
    assert dialog.key is None


def test_one_that_is_not_connected_stays_chosen_and_says_so(dialog: MicrophonesDialog) -> None:
    dialog.show_devices(DEVICES, "Studio (ALSA)")
    assert rows(dialog)[-1] == "Studio (ALSA)\nnot connected now"
    assert dialog.key == "Studio (ALSA)"


def test_selecting_listens_and_using_tells(dialog: MicrophonesDialog, qtbot: QtBot) -> None:
    with qtbot.waitSignal(dialog.listen) as heard:
        dialog.list.setCurrentRow(1)
    assert heard.args == [DEVICES[0].key]
    with qtbot.waitSignals([dialog.chosen, dialog.left]):
        qtbot.mouseClick(dialog.use, Qt.MouseButton.LeftButton)
    assert not dialog.isVisible()


def test_a_new_list_does_not_listen_by_itself(dialog: MicrophonesDialog, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(dialog.listen):
        dialog.show_devices(DEVICES, DEVICES[1].key)
    assert dialog.list.currentItem().data(KEY) == DEVICES[1].key


def test_cancelling_leaves_everything(dialog: MicrophonesDialog, qtbot: QtBot) -> None:
    with qtbot.waitSignal(dialog.left), qtbot.assertNotEmitted(dialog.chosen):
        qtbot.keyClick(dialog, Qt.Key.Key_Escape)


@pytest.mark.parametrize(
    ("state", "record", "play"),
    [
        (IDLE, False, False),
        (LISTENING, True, False),
        (RECORDING, False, False),
        (RECORDED, True, True),
        (PLAYING, False, False),
    ],
)
def test_buttons_follow_the_check(state: str, record: bool, play: bool, dialog: MicrophonesDialog) -> None:
    dialog.show_state(state)
    assert (dialog.test.isEnabled(), dialog.hear.isEnabled()) == (record, play)


@pytest.mark.parametrize(
    ("peak", "words"), [(0.0, "no sound"), (0.001, "no sound"), (0.005, "very quiet"), (0.2, "good"), (1.0, "too loud")]
)
def test_the_level_has_words(peak: float, words: str, dialog: MicrophonesDialog) -> None:
    dialog.show_level(0.0)
    dialog.show_level(peak)
    assert dialog.words.text() == words
    assert dialog.meter.accessibleDescription() == words


def test_the_highest_level_is_forgotten_after_a_second(dialog: MicrophonesDialog) -> None:
    dialog.show_level(1.0)
    dialog.show_level(0.1)
    assert dialog.words.text() == "too loud"
    for _ in range(25):
        dialog.show_level(0.1)
    assert dialog.words.text() == "good"


def test_problems_and_overflows_are_said(dialog: MicrophonesDialog) -> None:
    assert not dialog.problem.isVisible()
    dialog.show_problem("The microphone 'x' cannot be opened: <b>busy</b>.")
    assert "<b>busy</b>" in dialog.problem.text()
    assert dialog.problem.isVisible()
    dialog.show_overflows(3)
    assert "3 times" in dialog.overflows.text()
    dialog.show_overflows(0)
    assert not dialog.overflows.isVisible()


def test_no_microphone_at_all_says_what_to_do(dialog: MicrophonesDialog) -> None:
    dialog.show_devices([], None)
    assert dialog.hint.isVisible()
    assert "connect one" in dialog.hint.text()
