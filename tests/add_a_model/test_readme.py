"""README's "A model of your own", carried out as it stands there, in a copy of the checkout."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engine.alignatt.heads import head_set_from_json

ROOT = Path(__file__).parents[2]
TITLE = "### A model of your own"
SLOW_S = 300  # a busy machine; alone it takes 45 s

pytest.importorskip("torch")


def blocks() -> list[str]:
    """The indented blocks of the section, in order."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(TITLE)[2]
    section = re.split(r"^##", section, maxsplit=1, flags=re.MULTILINE)[0]
    found = re.findall(r"(?:^(?:    .*)?\n)+", section, re.MULTILINE)
    return [block for text in found if (block := re.sub(r"^    ", "", text, flags=re.MULTILINE).strip())]


def shell(folder: Path, block: str) -> str:
    """Run the commands of a block in the copy; what they print. `surtitle` is the copy's."""
    script = f'surtitle() {{ "{sys.executable}" -P -m app.cli "$@"; }}\nset -euo pipefail\n'
    done = subprocess.run(
        ["bash", "-c", script + block.replace(".venv/bin/python", sys.executable)],
        cwd=folder,
        env={"PYTHONPATH": str(folder), "PATH": "/usr/bin:/bin", "HOME": str(folder / "home"), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=SLOW_S,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else done.stdout


@pytest.mark.slow
@pytest.mark.timeout(2 * SLOW_S)
def test_a_reader_ends_with_a_working_translator_and_head_set(tmp_path: Path) -> None:
    copy = tmp_path / "checkout"
    for name in ("app", "engine", "resources", "tests/add_a_model"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "training"))
    (copy / "tests" / "__init__.py").touch()
    make, refused, spec, calibrate, preset, translate, said = blocks()

    assert "Made out/toy/toy-translator" in shell(copy, make)
    command, _, sentence = refused.partition("\n")
    assert sentence.rstrip("…").strip() in shell(copy, command)

    specs = copy / "engine" / "mt" / "attention_spec.py"
    text, opening = specs.read_text(encoding="utf-8"), "SPECS: dict[str, AttentionSpec] = {\n"
    specs.write_text(text.replace(opening, f"{opening}    {spec}\n"), encoding="utf-8")
    printed = shell(copy, calibrate)
    heads = copy / "resources" / "heads" / "toy-translator" / "en-de.json"
    assert heads.is_file(), printed
    found = head_set_from_json(json.loads(heads.read_text(encoding="utf-8")), "toy")
    assert (found.architecture, found.layers, found.query_heads) == ("GraniteForCausalLM", 2, 4)
    best = found.heads[0].score
    assert best is not None
    assert best > 0.5  # by chance it would look at one word in five or six

    (copy / "resources" / "presets" / "toy.toml").write_text(preset, encoding="utf-8")
    assert shell(copy, translate).splitlines()[: len(said.splitlines())] == said.splitlines()
