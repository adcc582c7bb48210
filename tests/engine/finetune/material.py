"""A folder of sentences with rows set aside and links, for tests."""

from __future__ import annotations

from pathlib import Path

from engine.alignatt.units import split_units
from engine.finetune.align import Words, write_links
from engine.finetune.rows import COLUMNS, TARGETS, draw, read_rows, write_held_out

SUBJECTS = "Anna|My brother|The old teacher|Nobody here".split("|")
VERBS = "found|opened|painted|wanted|forgot|carried".split("|")
OBJECTS = "seven keys|a green door|this picture|more light".split("|")


def write_material(folder: Path, held_out_per_file: int = 3) -> Path:
    """24 rows in two files. A word's translation is the word with the language's code behind it, in the same place."""
    folder.mkdir(parents=True, exist_ok=True)
    sentences = [
        f"{subject} {verb} {OBJECTS[(at + place) % 4]}."
        for at, subject in enumerate(SUBJECTS)
        for place, verb in enumerate(VERBS)
    ]
    for name, part in (("even", sentences[::2]), ("odd", sentences[1::2])):
        lines = ["\t".join([text, *(_translated(text, language) for language in TARGETS)]) for text in part]
        (folder / f"{name}.tsv").write_text("\n".join(["\t".join(COLUMNS), *lines]) + "\n", encoding="utf-8")
    rows = read_rows(folder)
    write_held_out(folder, draw(rows, held_out_per_file, seed=3))
    links: dict[tuple[str, str], Words] = {
        (row.row_id, language): tuple((at,) for at in range(len(split_units(row.source, "en"))))
        for row in rows
        for language in TARGETS
    }
    write_links(folder, links)
    return folder


def _translated(text: str, language: str) -> str:
    return " ".join(f"{word.strip('.')}{language}" for word in text.split()) + "."
