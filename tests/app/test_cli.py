"""The command line: every command, and every bad input as one sentence with status 2."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from app import cli
from app.commands import doctor
from app.commands.engine import engine_command, run_engine_command
from app.controller import SessionEnded
from app.export.validate import validate_file
from app.files import sessions_folder
from app.options import RunOptions
from app.session_files import newest, recover_session
from app.session_record import TranscriptError
from app.transcript import Transcript
from engine.presets import load_preset, preset_ids
from tests.app.captions import BEGAN, ENDED, caption
from tests.app.helpers import tone

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def session() -> Transcript:
    """A recorded session in the user's folder, cut off in its second utterance."""
    transcript = Transcript(sessions_folder())
    transcript.event(BEGAN)
    transcript.event(caption(0, "Guten Morgen.", "Good morning.", final=True))
    transcript.event(caption(1, "Wie geht", "How are you"))
    transcript._file.close()  # type: ignore[union-attr]
    return transcript


def refused(capsys: Capture, *words: str) -> str:
    """The one sentence with which a command line is refused."""
    try:
        status = cli.main(words)
    except SystemExit as left:
        status = left.code  # type: ignore[assignment]
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert err.count("\n") == 1, err
    assert err.endswith(".\n")
    return err


def test_version_and_help(capsys: Capture) -> None:
    for words, expected in ((["--version"], "surtitle "), (["--help"], "benchmark"), (["run", "--help"], "--export")):
        with pytest.raises(SystemExit) as left:
            cli.main(words)
        assert left.value.code == 0
        assert expected in capsys.readouterr().out


def test_version_names_commit_and_engine(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    program, window, engine = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"surtitle \d+\.\d+\.\d+\S*( \(commit [0-9a-f]{7,}(-dirty)?\))?", program)
    assert re.fullmatch(r"window: Python 3\.\d+\.\d+, PySide6 \S+", window)
    assert engine.startswith("engine: ")
    assert "faster-whisper" in engine


def test_bad_command_lines(capsys: Capture, tmp_path: Path) -> None:
    sound, noise, empty = tone(tmp_path / "a.wav"), tmp_path / "b.wav", tmp_path / "c.wav"
    noise.write_bytes(os.urandom(1000))
    empty.write_bytes(b"")
    for words, expected in (
        (["frobnicate"], "'frobnicate'"),
        (["run", str(sound), "--what", "all"], "'all'"),
        (["run", str(sound)], "--headless"),
        ([], "--headless"),
        (["run", "none.wav", "--headless"], "no file 'none.wav'"),
        (["run", str(tmp_path), "--headless"], "is a folder"),
        (["run", str(noise), "--headless"], "not an audio file"),
        (["run", str(empty), "--headless"], "holds no sound"),
        (["run", str(sound), "--headless", "--preset", "huge"], "no preset 'huge'"),
        (["run", str(sound), "--headless", "--to", "xx"], "does not translate en-xx"),
        (["run", str(sound), "--headless", "--export", "a.doc"], ".srt, .vtt"),
        (["run", str(sound), "--headless", "--export", str(empty / "a.srt")], "cannot be written"),
        (["run", str(sound), "--headless", "--log", str(tmp_path)], "it is a folder"),
        (["run", str(sound), "--headless", "--set", "nonsense"], "KEY=VALUE"),
        (["run", str(sound), "--headless", "--set", "policy.theta=7"], "not valid at 'policy.theta'"),
        (["run", str(sound), "--headless", "--set", "policy.colour=7"], "'policy.colour' is not a preset key."),
        (["run", str(sound), "--headless", "--set", "policy=7"], "'policy' of preset 'laptop' is a group of keys"),
        (["run", str(sound), "--headless", "--trace-plot", "a.doc"], "must end in one of .png, .svg, .pdf"),
        (
            ["run", str(sound), "--headless", "--trace-plot", str(tmp_path / "p.png"), "--to", "xx"],
            "not translate en-xx",
        ),
        (["run", str(sound), "--headless", "--trace-plot", str(empty / "a.png")], "cannot be written"),
        (["run", "--headless", "--fast"], "give one"),
        (["run", str(sound), "--mic"], "not allowed with"),
        (["sessions", "show", "last"], "no sessions"),
        (["export", "last", "a.srt"], "no sessions"),
        (["export", "last", "a.doc"], "must end in"),
    ):
        assert expected in refused(capsys, *words), words


def test_an_unforeseen_error_is_a_sentence_and_the_log_has_it(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr("app.commands.sessions.session_files", lambda folder: 1 / 0)
    assert cli.main(["sessions"]) == 1
    err = capsys.readouterr().err
    assert "ZeroDivisionError" in err
    assert "Traceback" not in err
    (log,) = home.rglob("app.log")
    assert "Traceback" in log.read_text()


def test_a_log_folder_that_cannot_be_made_is_said(capsys: Capture, home: Path) -> None:
    (home / "state").write_text("")
    assert cli.main(["sessions"]) == 0
    assert "there will be none" in capsys.readouterr().err


def test_sessions_list_show_delete(capsys: Capture, session: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli.main(["sessions"]) == 0
    listed = capsys.readouterr().out
    assert listed.splitlines()[0].split() == ["id", "started", "length", "pair", "words", "title", "state"]
    assert "0a1b2c3d" in listed
    assert "en-de" in listed
    assert "cut off" in listed
    assert cli.main(["sessions", "show", "0a1b"]) == 0
    assert capsys.readouterr().out == "Good morning.\nGuten Morgen.\n\nHow are you\nWie geht\n"
    assert cli.main(["sessions", "show", "last", "--what", "source"]) == 0
    assert capsys.readouterr().out == "Good morning.\nHow are you\n"
    monkeypatch.setattr("sys.stdin", open(os.devnull))  # noqa: PTH123, SIM115
    assert "--yes" in refused(capsys, "sessions", "delete", "last")
    sys.stdin.close()
    assert cli.main(["sessions", "delete", "last", "--yes"]) == 0
    assert cli.main(["sessions", "list"]) == 0
    assert "no sessions" in capsys.readouterr().err


def test_a_damaged_session_does_not_spoil_the_list(capsys: Capture, session: Transcript) -> None:
    (sessions_folder() / "20990101-000000-00000000.jsonl").write_text("nonsense\n")
    assert cli.main(["sessions"]) == 0
    out = capsys.readouterr().out
    assert "damaged" in out
    assert "0a1b2c3d" in out


def test_a_session_of_a_newer_version_is_left_to_that_one(capsys: Capture, session: Transcript, tmp_path: Path) -> None:
    assert session.path is not None
    text = session.path.read_text().replace('"schema_version": 1', '"schema_version": 2', 1)
    newer = sessions_folder() / "20990101-000000-99999999.jsonl"
    newer.write_text(text)
    assert cli.main(["sessions"]) == 0
    assert "of a newer version" in capsys.readouterr().out
    said = "The session 20990101-000000-99999999 was recorded by a newer version of Surtitle: open it with that one.\n"
    assert refused(capsys, "sessions", "show", "9999") == said
    assert refused(capsys, "export", "9999", str(tmp_path / "x.srt")) == said
    with pytest.raises(TranscriptError, match="newer version"):
        recover_session(newer)
    assert newer.read_text() == text


def test_last_is_the_newest_session_that_can_be_read(capsys: Capture, session: Transcript, tmp_path: Path) -> None:
    out = tmp_path / "x.txt"
    (sessions_folder() / "20990101-000000-00000000.jsonl").write_text("nonsense\n")
    (sessions_folder() / "20990102-000000-00000000.jsonl").write_text("")
    assert cli.main(["export", "last", str(out)]) == 0
    said = [
        "The session 20990102-000000-00000000 is empty; it was passed over.",
        "The session 20990101-000000-00000000 is not a session journal or is damaged throughout; it was passed over.",
    ]
    assert capsys.readouterr().err.splitlines() == [*said, f"Wrote {out}."]
    assert out.read_text() == "Guten Morgen.\nWie geht\n"
    assert cli.main(["sessions", "show", "last", "--what", "target"]) == 0
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()) == ("Guten Morgen.\nWie geht\n", said)
    assert "damaged throughout." in refused(capsys, "export", "20990101", str(out))
    assert session.path is not None
    session.close()
    assert cli.main(["sessions", "delete", "last", "--yes"]) == 0
    assert not session.path.exists(), "the one that was shown and exported"
    capsys.readouterr()
    assert cli.main(["export", "last", str(out)]) == 2
    assert "None of the sessions in" in capsys.readouterr().err


def test_export_of_a_session_that_was_cut_off(capsys: Capture, session: Transcript, tmp_path: Path) -> None:
    paths = [tmp_path / f"x.{kind}" for kind in ("txt", "srt", "vtt", "jsonl")]
    assert cli.main(["export", "last", *map(str, paths), "--what", "both"]) == 0
    assert all(validate_file(path) >= 2 for path in paths)
    assert capsys.readouterr().err.count("Wrote") == 4
    assert json.loads(paths[3].read_text().splitlines()[1])["target"] == "Wie geht"
    (tmp_path / "file").write_text("")
    assert cli.main(["export", "last", str(tmp_path / "file" / "x.srt"), str(tmp_path / "y.srt")]) == 2
    assert "Cannot write" in capsys.readouterr().err
    assert (tmp_path / "y.srt").exists()


def test_output_that_nobody_reads_is_no_error(session: Transcript) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "app.cli", "sessions"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as child:
        assert child.stdout
        assert child.stderr
        child.stdout.close()
        assert child.stderr.read() == b""
    assert child.returncode == 0


def test_options_become_a_configuration(tmp_path: Path) -> None:
    options = RunOptions(target_lang="fr", overrides={"policy.theta": 0.4}, trace=True, context="weather")
    command = options.configure()
    assert (command.target_lang, command.overrides, command.trace) == ("fr", {"policy.theta": 0.4}, True)
    assert command.context == "weather"


def test_set_takes_numbers_words_and_paths() -> None:
    from app.commands.run import _override

    assert _override("policy.theta=0.4") == ("policy.theta", 0.4)
    assert _override("recogniser.model=/some/path") == ("recogniser.model", "/some/path")
    assert _override('a="b"') == ("a", "b")


def test_engine_commands_are_handed_over(capfd: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "engine").mkdir()
    (tmp_path / "engine" / "__init__.py").write_text("raise SystemExit('the wrong engine')")
    monkeypatch.chdir(tmp_path)
    assert run_engine_command(["no-such-command"]) == 2
    assert "no-such-command" in capfd.readouterr().err
    assert cli.main(["benchmark", "no-such-benchmark"]) == 2
    assert engine_command(["evaluate", "x"])[-2:] == ["evaluate", "x"]


def test_an_engine_command_that_is_killed_has_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    kill = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    monkeypatch.setattr("app.commands.engine.engine_command", lambda words: [sys.executable, "-c", kill])
    assert run_engine_command(["benchmark"]) == 143


ENGINE = {
    "libraries": {"faster-whisper": "1.2.1"},
    "gpus": [],
    "gpu_obstacles": {preset: f"{preset} needs a GPU." for preset in preset_ids() if load_preset(preset).gpu_gib},
    "models": [
        {"name": "whisper-tiny.en", "present": True, "where": "/models/w", "bytes": 75_000_000},
        {"name": "gemma-3-270m", "present": False, "where": "", "bytes": 0},
    ],
}


def test_doctor_reports(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "examine_engine", lambda: (ENGINE, doctor.Finding("ok", "engine", "faster-whisper 1.2.1"))
    )
    monkeypatch.setattr(doctor, "_answers", lambda url: False)
    assert cli.main(["doctor", "--json"]) == 1
    found = {(row["name"], row["text"]): row["state"] for row in json.loads(capsys.readouterr().out)}
    assert found["preset", "laptop (demo quality): the weights of gemma-3-270m are missing"] == "note"
    assert found["model", "whisper-tiny.en, 75 MB at /models/w"] == "ok"
    assert found["presets", "none can be used on this machine"] == "bad"
    names = {name for name, _ in found}
    assert {"Python", "Qt", "display", "engine", "memory", "disk", "log", "sessions"} <= names
    assert any(name.startswith("microphone") for name in names)
    cli.main(["doctor"])
    assert "✗ presets: none can be used" in capsys.readouterr().out


def test_doctor_when_the_engine_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "engine_command", lambda words: [sys.executable, "-c", "raise ImportError('no wheels')"]
    )
    answer, finding = doctor.examine_engine()
    assert answer == {}
    assert (finding.state, finding.text) == ("bad", "it does not start: ImportError: no wheels")


def test_why_a_preset_cannot_be_used() -> None:
    preset = load_preset("laptop", {"needs.ram_gib": 100_000})
    everything = {**ENGINE, "gpu_obstacles": {"laptop": "laptop needs 40 GiB on one GPU, and the largest here has 8."}}
    why = doctor.obstacles(preset, everything)
    assert "needs 40 GiB on one GPU, and the largest here has 8" in why
    assert any("100000 GiB of memory" in reason for reason in why)
    assert "the engine does not start" in doctor.obstacles(preset, {})


def test_a_remote_preset_needs_its_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"ws://127.0.0.1:{listening.getsockname()[1]}"
        preset = load_preset("remote", {"translator.url": url})
        assert doctor.obstacles(preset, ENGINE) == []
    assert doctor.obstacles(preset, ENGINE) == [f"no MT server answers at {url}"]


def test_the_last_session_is_the_newest(session: Transcript) -> None:
    assert newest(sessions_folder(), print)[0] == session.path
    session.event(SessionEnded(BEGAN.session_id, 1.0, 1.0))
    assert ENDED.session_id == BEGAN.session_id
