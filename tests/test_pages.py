"""What the pages say, held against the program: commands parse, links and paths lead somewhere, the version is right.

That the commands also do what the pages promise is for the tests of those commands; here no command runs.
"""

from __future__ import annotations

import argparse
import importlib
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from app import command_line
from app.widgets.window_actions import DEFAULT_KEYS
from engine import __main__ as engine_cli
from engine import __version__
from engine.finetune import __main__ as finetune_cli

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("engine/**/*.md"), *ROOT.glob("resources/**/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
SURTITLE = re.compile(r"^(?:\.venv/bin/)?surtitle(?: |$)")
# Placeholders and optional words: what stands for the reader's own.
PLACEHOLDERS = {"TEXT": "talk.txt", "LOG": "session.jsonl", "FILE": "talk.wav", "COMMAND": ""}


def block_lines(text: str) -> Iterator[str]:
    """Lines of indented blocks, continued ones joined, comments and the left side of pipes taken off."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.startswith("    ") and not line.startswith("    #"):
            yield re.split(r"\s{2,}#\s", line)[0].split(" | ")[-1].split(" && ")[0].strip()


def commands(text: str) -> list[str]:
    """Commands of this program on a page: in blocks, and between backticks."""
    inline = [" ".join(code.split()) for code in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    return [line for line in (*block_lines(text), *inline) if SURTITLE.match(line) or "python -m " in line]


def words_of(command: str) -> list[str]:
    """The arguments of a command as a shell would give them."""
    plain = re.sub(r"[\[\]]", "", command).replace("…", "").replace("*", "")
    words = shlex.split(plain, comments=True)
    return [PLACEHOLDERS.get(word, word) for word in words if PLACEHOLDERS.get(word, word)]


def parse(command: str) -> None:
    """Parse a command with the parser that it would meet. Raises `SystemExit` when that refuses it."""
    words = words_of(command)
    if "-m" in words:
        module, words = words[words.index("-m") + 1], words[words.index("-m") + 2 :]
        if module == "engine.finetune":
            finetune_cli._parser().parse_args(words)
        else:
            assert importlib.util.find_spec(module), command
        return
    words = words[1:]
    table, name = engine_cli.COMMANDS, words[0] if words else ""
    if name == "benchmark":
        if len(words) == 1:
            return
        table, name, words = engine_cli.BENCHMARKS, words[1], words[1:]
    if table is engine_cli.BENCHMARKS and name == "window":
        text = (ROOT / "app" / "benchmark_window.py").read_text(encoding="utf-8")
        assert all(f'"{word}"' in text for word in words if word.startswith("--")), command
    elif name in table and name != "doctor":
        parser = argparse.ArgumentParser(name)
        importlib.import_module(table[name][0]).add_arguments(parser)
        if len(words) > 1:  # alone it is the name of the command
            parser.parse_args(words[1:])
    elif words != ["--version"]:
        command_line.parser(words).parse_args(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_the_program_parse(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in commands(page.read_text(encoding="utf-8")):
        try:
            parse(command)
        except SystemExit:
            pytest.fail(f"{command}: {capsys.readouterr().err}")


def test_commands_are_found_and_a_wrong_one_is_seen() -> None:
    found = commands(README)
    assert ".venv/bin/surtitle run talk.flac --to it --headless" in found
    assert "surtitle benchmark session --minutes 30 --fast" in found
    assert len(found) > 30
    for wrong in ("surtitle run talk.flac --too de", "surtitle benchmark session --hours 3", "surtitle frobnicate"):
        with pytest.raises(SystemExit):
            parse(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith("http")]
    lost = [link for link in links if not (page.parent / link.partition("#")[0]).exists()]
    shown = re.findall(r"`((?:app|engine|packaging|resources|results|tests)/[\w./*-]+)`", text)
    made = {"resources/presets/toy.toml"}  # by the reader of the worked example
    for path in set(shown) - made:
        base = page.parent if path.startswith("results/") else ROOT
        if page.name == "LIMITATIONS.md" and path.startswith("results/"):
            base = ROOT / "engine" / "benchmarks"
        lost += [] if list(base.glob(path)) else [path]
    assert lost == []


def test_make_has_every_target_that_is_shown() -> None:
    makefiles = [ROOT / "Makefile", ROOT / "packaging" / "vllm.mk"]
    targets = set(re.findall(r"^([\w-]+):", "\n".join(path.read_text("utf-8") for path in makefiles), re.MULTILINE))
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        asked = re.findall(r"(?:`|^    (?:\S+=\S+ )*)make ([a-z][\w-]*)", text, re.MULTILINE)
        assert set(asked) <= targets, page
    assert {"demo", "run", "deb", "release", "test-packages"} <= set(re.findall(r"make ([a-z-]+)", README))


def test_scripts_that_are_shown_can_be_started() -> None:
    scripts = set(re.findall(r"packaging/[\w/-]+\.sh", README))
    assert scripts
    assert all(os.access(ROOT / script, os.X_OK) for script in scripts)


def test_keys_that_are_shown_are_the_keys() -> None:
    shown = re.findall(r"`((?:Ctrl\+|Shift\+)*(?:Ctrl\+\S+|F\d+))`", README)
    assert len(shown) > 4
    assert set(shown) <= set(DEFAULT_KEYS.values())


def test_one_version() -> None:
    assert set(re.findall(r"surtitle[_-](\d+\.\d+\.\d+)", README)) == {__version__}
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(__version__)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE)
    others = [ROOT / "pyproject.toml", ROOT / "Makefile", *(ROOT / "packaging").rglob("*.*")]
    assert [path for path in others if path.is_file() and __version__ in path.read_text("utf-8").split()] == []


def test_three_readers_in_order() -> None:
    titles = re.findall(r"^## (For someone who .*)$", README, re.MULTILINE)
    assert [title.removeprefix("For someone who ") for title in titles[:3]] == [
        "wants subtitles",
        "wants numbers",
        "wants to add a model",
    ]
