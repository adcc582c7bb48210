"""The preset dialog: what can be chosen, and why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from app.downloads import Download
from app.preset_cards import GPU, Need, PresetCard, Weights, preset_cards
from app.settings import Speed
from app.widgets.presets_dialog import PresetChoice, PresetsDialog
from engine.messages import Machine

MACHINE = Machine(
    "3.11", 2, 8.0, (), (("whisper-tiny.en", True, "/w", 1), ("gemma-3-270m", True, "/g", 1), ("x", True, "/x", 1))
)


def cards() -> list[PresetCard]:
    laptop = next(card for card in preset_cards(MACHINE, free_gib=50.0)[0] if card.preset.id == "laptop")
    second = replace(
        laptop,
        preset=laptop.preset.model_copy(
            update={"id": "second", "title": "<b>Second</b>", "pairs": (("en", "it"), ("cs", "en"))}
        ),
        licences=(),
        speed=Speed(real_time_factor=0.62, lag_s=1.8),
    )
    large = replace(
        laptop,
        preset=laptop.preset.model_copy(update={"id": "large", "title": "Large"}),
        needs=(Need(GPU, 40.0, 0.0),),
        weights=(Weights("owner/model", None, 9_400_000_000),),
    )
    return [laptop, second, large]


@pytest.fixture
def dialog(qtbot: QtBot) -> Iterator[PresetsDialog]:
    made = PresetsDialog()
    made.show_cards(cards())
    made.show_choice("laptop", "en", "fr", "")
    made.show()
    qtbot.waitExposed(made)
    yield made
    made.hide()
    made.deleteLater()


def texts(dialog: PresetsDialog, index: int) -> str:
    return "\n".join(label.text() for label in dialog.cards[index].findChildren(QLabel) if label.isVisible())


def test_two_clicks_from_the_first_start_to_a_session(dialog: PresetsDialog, qtbot: QtBot) -> None:
    assert not dialog.start.isEnabled()
    assert "licence" in dialog.hint.text()
    qtbot.mouseClick(dialog.boxes["Gemma Terms of Use"], Qt.MouseButton.LeftButton)
    with qtbot.waitSignal(dialog.chosen) as heard:
        qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert heard.args == [PresetChoice("laptop", "en", "fr", "", ("Gemma Terms of Use",), True)]
    assert not dialog.isVisible()


def test_a_preset_that_cannot_be_used_says_why(dialog: PresetsDialog) -> None:
    assert not dialog.cards[2].radio.isEnabled()
    assert "It needs a GPU with 40 GB, and there is none here." in texts(dialog, 2)
    assert "9.4 GB to download" in texts(dialog, 2)
    assert "there is no GPU here" in texts(dialog, 2)
    dialog.show_choice("large", "en", "de", "")
    assert dialog.card is not None
    assert dialog.card.preset.id == "laptop"


def shown(qtbot: QtBot, machine: Machine) -> PresetsDialog:
    made = PresetsDialog()
    qtbot.addWidget(made)
    made.show_cards(preset_cards(machine, free_gib=100.0)[0])
    made.show()
    return made


@pytest.mark.parametrize(
    ("gpus", "vllm", "reason"),
    [
        ((), "", "It needs a GPU with 33 GB, and there is none here."),
        ((("L4", 22.5, 22.1),), "0.26.0", "It needs 33 GB of GPU memory; L4 has 22 GB free."),
        ((("A100", 40.0, 20.9),), "0.26.0", "It needs 33 GB of GPU memory; A100 has 20 GB free. Close what uses it."),
        (
            (("A100", 40.0, 39.4),),
            "",
            "It needs vLLM, which is not installed: run `surtitle setup --gpu` in a terminal.",
        ),
    ],
)
def test_presets_for_a_gpu_are_shown_with_what_keeps_them_from_running(
    qtbot: QtBot, gpus: tuple[tuple[str, float, float], ...], vllm: str, reason: str
) -> None:
    dialog = shown(qtbot, replace(MACHINE, ram_gib=64.0, gpus=gpus, vllm=vllm))
    number = next(n for n, view in enumerate(dialog.cards) if view.card.preset.id == "gemma_low_latency")
    assert not dialog.cards[number].radio.isEnabled()
    assert dialog.cards[number].reason.text() == f"⚠ {reason}"
    rows = texts(dialog, number).splitlines()
    assert "·\u00a0model Qwen/Qwen3-ForcedAligner-0.6B (downloaded when it is first used)" in rows
    assert dialog.card is not None
    assert dialog.card.preset.id == "laptop"


def test_one_click_starts_a_preset_for_a_gpu(qtbot: QtBot) -> None:
    dialog = shown(qtbot, replace(MACHINE, ram_gib=64.0, gpus=(("A100", 40.0, 39.4),), vllm="0.26.0"))
    gemma = next(view for view in dialog.cards if view.card.preset.id == "gemma_low_latency")
    assert gemma.radio.isEnabled()
    qtbot.mouseClick(gemma, Qt.MouseButton.LeftButton)
    assert dialog.boxes == {}  # Apache License 2.0: nothing to accept
    with qtbot.waitSignal(dialog.chosen) as heard:
        qtbot.mouseClick(dialog.start, Qt.MouseButton.LeftButton)
    assert heard.args[0].preset == "gemma_low_latency"


def test_cards_say_what_they_need_and_how_fast_they_are(dialog: PresetsDialog) -> None:
    laptop = texts(dialog, 0)
    assert "English → German, French, Spanish, Italian" in laptop
    assert "1.5 GB of memory (here: 8.0 GB)" in laptop
    assert "demo quality" in laptop
    assert "Not measured" in laptop
    assert "1.8 s behind the voice, 0.62 s of work" in texts(dialog, 1)


def test_another_preset_brings_its_languages(dialog: PresetsDialog, qtbot: QtBot) -> None:
    qtbot.mouseClick(dialog.cards[1], Qt.MouseButton.LeftButton)
    assert [dialog.source.itemData(row) for row in range(dialog.source.count())] == ["en", "cs"]
    dialog.source.setCurrentIndex(1)
    assert [dialog.target.itemData(row) for row in range(dialog.target.count())] == ["en"]
    assert dialog.boxes == {}
    dialog.context.setPlainText("x" * 5000)
    with qtbot.waitSignal(dialog.chosen) as heard:
        dialog.use.click()
    choice = heard.args[0]
    assert (choice.preset, choice.source_lang, choice.target_lang, choice.start) == ("second", "cs", "en", False)
    assert len(choice.context) == 2000


def test_the_choice_survives_news_of_the_machine(dialog: PresetsDialog) -> None:
    dialog.boxes["Gemma Terms of Use"].setChecked(True)
    dialog.show_cards(cards())
    assert dialog.boxes["Gemma Terms of Use"].isChecked()
    assert dialog.start.isEnabled()
    dialog.cards[1].radio.setChecked(True)
    dialog.show_cards(cards())
    assert dialog.card is not None
    assert dialog.card.preset.id == "second"


def test_nothing_that_can_be_used_is_said(dialog: PresetsDialog) -> None:
    dialog.show_cards([cards()[2]], ["Preset 'x' is not valid at 'id'."], asking=True)
    assert dialog.card is None
    assert not dialog.start.isEnabled()
    assert "No preset can be used" in dialog.hint.text()
    assert "Preset 'x' is not valid" in dialog.problem.text()
    assert "Looking at" in dialog.problem.text()


def test_the_arrow_keys_go_from_card_to_card(dialog: PresetsDialog, qtbot: QtBot) -> None:
    dialog.cards[0].radio.setFocus()
    qtbot.keyClick(dialog.cards[0].radio, Qt.Key.Key_Down)
    assert dialog.cards[1].radio.isChecked()


def test_markup_in_a_preset_stays_text(dialog: PresetsDialog) -> None:
    assert dialog.cards[1].radio.text() == "<b>Second</b>"
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in dialog.cards[1].findChildren(QLabel))


def test_a_remote_preset_asks_for_its_server(dialog: PresetsDialog, qtbot: QtBot) -> None:
    assert not dialog.server.isVisible()
    remote = next(card for card in preset_cards(MACHINE, free_gib=50.0)[0] if card.preset.id == "remote")
    dialog.show_cards([remote])
    assert dialog.server.isVisible()
    assert dialog.server.text() == "ws://127.0.0.1:8765"
    dialog.server.setText("http://wrong")
    assert not dialog.start.isEnabled()
    assert "ws://" in dialog.hint.text()
    dialog.server.setText(" wss://mt.example:443 ")
    with qtbot.waitSignal(dialog.chosen) as heard:
        dialog.start.click()
    assert heard.args[0].server == "wss://mt.example:443"


def test_downloads_are_paused_resumed_and_cancelled(dialog: PresetsDialog, qtbot: QtBot) -> None:
    rows = dialog.downloads
    assert not rows.isVisible()
    dialog.show_downloads([Download("m", 3_000_000, 9_000_000, "running", 1e6)])
    assert rows.isVisible()
    text = " ".join(label.text() for label in rows.findChildren(QLabel))
    assert "m: 3 of 9 MB, 1.0 MB/s, 0:06 left" in text
    with qtbot.waitSignal(dialog.download) as heard:
        rows.pause.click()
    assert heard.args == ["pause"]
    dialog.show_downloads([Download("m", 3_000_000, 9_000_000, "paused")])
    with qtbot.waitSignal(dialog.download) as heard:
        rows.pause.click()
    assert heard.args == ["resume"]
    with qtbot.waitSignal(dialog.download) as heard:
        rows.cancel.click()
    assert heard.args == ["cancel"]
    for state, said in (("done", "complete"), ("failed", "start again"), ("cancelled", "cancelled")):
        dialog.show_downloads([Download("m", 9_000_000, 9_000_000, state)])
        assert said in " ".join(label.text() for label in rows.findChildren(QLabel))
        assert not rows.pause.isVisible()


def test_everything_has_a_name_for_screen_readers(dialog: PresetsDialog) -> None:
    for widget in (dialog.source, dialog.target, dialog.context, dialog.server, dialog.token_file):
        assert widget.accessibleName(), widget
    assert "GPU" in dialog.cards[2].radio.accessibleDescription()


def test_a_running_session_is_said_on_the_button(dialog: PresetsDialog) -> None:
    dialog.show_running(True)
    assert dialog.start.text() == "&Restart with this"
