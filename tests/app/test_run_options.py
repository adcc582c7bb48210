"""What the window is started with, whatever stands in the settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.commands.run import options_of
from app.errors import UserError
from app.files import AppendFile
from app.options import RunOptions, overrides_of
from app.settings import Settings


@pytest.mark.parametrize(
    "wrong",
    [
        {"preset": "gone"},
        {"preset": "../../etc/passwd"},
        {"preset": ""},
        {"source_lang": "xx"},
        {"target_lang": "a\nb"},
        {"preset": "remote", "server": "nonsense\n"},
    ],
)
def test_settings_never_keep_the_program_from_starting(
    wrong: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = options_of(Settings(**wrong))
    if "server" not in wrong:
        assert (wanted.preset, wanted.source_lang, wanted.target_lang) == ("laptop", "en", "de")
        assert "the built-in preset is used" in capsys.readouterr().err
    wanted.check()


def test_what_is_remembered_is_asked_for_but_not_insisted_on() -> None:
    wanted = options_of(Settings(target_lang="fr", microphone="Desk\n(ALSA)", context="Ada Lovelace"))
    assert (wanted.target_lang, wanted.microphone, wanted.context) == ("fr", "Desk\n(ALSA)", "Ada Lovelace")
    assert not wanted.microphone_required
    assert not wanted.autostart


def test_a_log_that_another_program_writes_is_left_alone(tmp_path: Path) -> None:
    options = RunOptions(log=tmp_path / "log.jsonl")
    options.check()
    file = AppendFile(tmp_path / "log.jsonl", "session log")
    file.append("{}")
    with pytest.raises(UserError, match=r"log\.jsonl' is being written by another Surtitle: name another file\.$"):
        options.check()
    file.close()
    options.check()
    assert (tmp_path / "log.jsonl").read_text() == "{}\n"


def test_own_models_and_servers_go_where_they_fit() -> None:
    own = {"recogniser.model": "/r", "translator.model": "/t.gguf", "unknown.key": "/x"}
    settings = Settings(models=own, server="ws://host:1", token_file="/token")
    assert overrides_of(settings, "laptop") == {"recogniser.model": "/r", "translator.model": "/t.gguf"}
    assert overrides_of(settings, "remote") == {
        "recogniser.model": "/r",
        "translator.url": "ws://host:1",
        "translator.token_file": "/token",
    }
