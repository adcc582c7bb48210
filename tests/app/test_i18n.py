"""The interface's languages: complete, up to date, and without a way to break the program."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QDialogButtonBox

from app.i18n import fill, language_for, languages, translate, use_language
from app.status import Phase, Status
from app.widgets.sentences import SENTENCES, say, state_line
from engine.presets import resources
from tests.app.leaks import throw_away

FOLDER = resources() / "translations"
FILES = sorted(FOLDER.glob("surtitle_*.ts"))


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    assert use_language("de") == "de"
    yield
    use_language("en")


def messages(path: Path) -> list[tuple[str, str, str]]:
    """(context, source, translation)"""
    found = []
    for context in ElementTree.parse(path).getroot().iter("context"):
        for message in context.iter("message"):
            translation = message.find("translation")
            assert translation is not None
            assert translation.get("type") is None, f"unfinished: {message.findtext('source')}"
            found.append((context.findtext("name", ""), message.findtext("source", ""), translation.text or ""))
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_translation_is_complete_and_has_the_places_of_the_text(path: Path) -> None:
    for context, source, translation in messages(path):
        assert translation, (context, source)
        assert sorted(re.findall(r"{[^}]*}", source)) == sorted(re.findall(r"{[^}]*}", translation)), source
        assert source.count("&") == translation.count("&"), source


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_compiled_file_is_that_of_the_texts(path: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.qm"
    tool = Path(sys.executable).with_name("pyside6-lrelease")
    subprocess.run([tool, "-silent", path, "-qm", made], check=True, timeout=60)
    assert made.read_bytes() == path.with_suffix(".qm").read_bytes(), "run `make translations`"


def test_every_text_of_the_code_is_in_the_files(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    sources = [path for path in (root / "app").rglob("*.py") if re.search(r"translate\(|NOOP", path.read_text("utf-8"))]
    collected = tmp_path / "all.ts"
    tool = Path(sys.executable).with_name("pyside6-lupdate")
    subprocess.run([tool, *sources, "-ts", collected], check=True, timeout=100, capture_output=True)
    wanted = {
        (context.findtext("name"), message.findtext("source"))
        for context in ElementTree.parse(collected).getroot().iter("context")
        for message in context.iter("message")
    }
    assert len(wanted) > 200
    for path in FILES:
        there = {(context, source) for context, source, _ in messages(path)}
        assert wanted <= there, f"run `make translations` and translate {wanted - there} in {path.name}"


@pytest.mark.usefixtures("german")
def test_german() -> None:
    assert translate("Actions", "Quit") == "Beenden"
    assert state_line(Status(Phase.LISTENING, speech=True, lag_s=4.23)) == "4.2 s zurück"
    assert state_line(Status(Phase.LOADING, "starting the engine", 0.45)) == "Laden 45 %: die Engine startet"
    box = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel)
    assert box.buttons()[0].text() == "Abbrechen", "Qt's own buttons, too"
    throw_away(box)


@pytest.mark.usefixtures("qapp")
def test_languages_are_found_by_their_files() -> None:
    assert list(languages().items())[:2] == [("en", "English"), ("de", "Deutsch")]
    assert language_for("de_AT") == "de"
    assert language_for("tlh") == "en"
    assert use_language("nonsense\n") == "en"


@pytest.mark.usefixtures("german")
def test_sentences_from_elsewhere_are_said_as_they_are() -> None:
    assert say("Something nobody listed.") == "Something nobody listed."
    assert say("") == ""
    two = "The microphone 'Jabra' was disconnected: it is looked for. Something else."
    assert say(two) == "Das Mikrofon „Jabra“ wurde getrennt: Es wird gesucht. Something else."


@pytest.mark.usefixtures("qapp")
def test_in_english_every_sentence_is_itself() -> None:
    for sentence in SENTENCES:
        text = re.sub(r"{\w+}", "7", sentence)
        assert say(text) == text


def test_a_slip_in_a_translation_costs_only_its_places() -> None:
    assert fill("{seconds:.1f} s", seconds=1.25) == "1.2 s"
    assert fill("{sekunden:.1f} s", seconds=1.25) == " s"
    assert fill("{", seconds=1) == "{"
    assert fill("{text}", text="{x}") == "{x}"
