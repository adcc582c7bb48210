"""`python -m engine COMMAND`: what it knows, and status 2 with one sentence for what it does not."""

from __future__ import annotations

import importlib.util
import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from engine.__main__ import BENCHMARKS, COMMANDS, main
from engine.models import ModelError
from engine.presets import PresetError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nonsense"], "There is no command 'nonsense'; commands are doctor, calibrate, "),
        (["--nonsense"], "There is no command '--nonsense'; commands are "),
        ([], "Name a command; commands are "),
        (["benchmark"], "Name a benchmark; benchmarks are session, "),
        (["benchmark", "nonsense"], "There is no benchmark 'nonsense'; benchmarks are session, "),
        (["doctor", "--nonsense"], "Unrecognized arguments: --nonsense; see `surtitle doctor --help`."),
        (
            ["benchmark", "policies", "--jobs", "x"],
            "Argument --jobs: invalid int value: 'x'; see `surtitle benchmark p",
        ),
    ],
)
def test_a_bad_command_is_status_2_and_a_sentence(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(sentence)
    assert captured.err.count("\n") == 1
    assert captured.err.endswith("--help`.\n")


def test_every_command_is_in_the_sentence_and_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words, known in (([], (*COMMANDS, "benchmark")), (["benchmark"], (*BENCHMARKS, "window"))):
        for asked, show in (([], lambda: capsys.readouterr().err), (["--help"], lambda: capsys.readouterr().out)):
            with pytest.raises(SystemExit):
                main([*words, *asked])
            text = show()
            assert all(name in text for name in known)


def test_ctrl_c_is_a_quiet_end(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(args: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("engine.doctor.run", interrupted)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (PresetError("There is no preset 'x'."), 2, "There is no preset 'x'."),
        (ModelError("There is no model at 'x'."), 2, "There is no model at 'x'."),
        (
            ZeroDivisionError("a bug"),
            1,
            "Something went wrong that should not (ZeroDivisionError): {log} has the details.",
        ),
    ],
)
def test_what_a_command_did_not_expect_is_a_sentence(
    error: Exception, status: int, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    program = (
        "import sys, pickle, engine.doctor, engine.__main__ as program\n"
        "def fails(args): raise pickle.loads(bytes.fromhex(sys.argv[1]))\n"
        "engine.doctor.run = fails\n"
        "sys.exit(program.main(['doctor']))"
    )
    words = [sys.executable, "-c", program, pickle.dumps(error).hex()]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    log = tmp_path / "surtitle" / "log" / "engine.log"
    said = done.stderr.splitlines()
    assert (done.returncode, said[-1]) == (status, sentence.format(log=log))
    assert log.is_file() is (status == 1)
    assert status == 2 or "Traceback" in log.read_text()


def test_as_a_program_too() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "engine", "nonsense"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "There is no command 'nonsense'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["benchmark", "--help"], ["doctor", "--help"]])
def test_help_is_status_0(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 0
    assert "usage: surtitle" in capsys.readouterr().out


@pytest.mark.parametrize(("module", "text"), [*COMMANDS.values(), *BENCHMARKS.values()])
def test_every_command_exists_and_has_its_line(module: str, text: str) -> None:
    assert importlib.util.find_spec(module) is not None
    assert text
    assert not text.endswith(".")


def test_doctor_lists_models_and_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("whisper-tiny.en: ") for line in lines)
    assert any(line.startswith("onnxruntime ") for line in lines)


def test_doctor_for_programs_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["python"] == sys.version.split()[0]
    assert report["ram_gib"] > 0
    assert {"name", "present", "where", "bytes"} == report["models"][0].keys()
    assert "silero-vad" in [model["name"] for model in report["models"]]
    assert report["libraries"]["onnxruntime"]


def test_a_package_that_is_missing_is_named_with_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setitem(COMMANDS, "evaluate", ("tests.engine.needs_sacrebleu", "score"))
    assert main(["evaluate", "log"]) == 2
    sentence = capsys.readouterr().err
    assert "surtitle[evaluation]" in sentence
    assert sentence.count("\n") == 1
