"""Rows of the training material: one sentence in five languages, and which rows are set aside."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import regex

from engine.files import write_atomically

SOURCE = "en"
TARGETS = ("de", "fr", "es", "it")
COLUMNS = (SOURCE, *TARGETS)
HELD_OUT = "held_out.tsv"
HELD_OUT_HEADER = ("file", "row", "en")
SEED = 20261129
_WORD = regex.compile(r"[\p{L}\p{N}]+")
_ID_CHARS = 16


class FinetuneError(Exception):
    """Material, weights or settings that cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence and its translations. `texts`: by language code, no line breaks, no spaces around."""

    file: str
    number: int
    texts: dict[str, str]

    @property
    def source(self) -> str:
        return self.texts[SOURCE]

    @property
    def row_id(self) -> str:
        """Names the row by its English words: the same after reordering, another after an edit."""
        return hashlib.sha256(normalised(self.source).encode()).hexdigest()[:_ID_CHARS]


@dataclass(frozen=True, slots=True)
class Parts:
    """The rows by use. `held_out` is only ever translated and scored, once a model is finished."""

    train: tuple[Row, ...]
    development: tuple[Row, ...]
    held_out: tuple[Row, ...]


def normalised(text: str) -> str:
    """Letters and digits in lower case with single spaces: what two writings of a sentence share."""
    return " ".join(words(text))


def words(text: str) -> list[str]:
    """Words without case and punctuation."""
    return [str(word) for word in _WORD.findall(text.casefold())]


def read_rows(folder: Path) -> list[Row]:
    """Rows of every TSV file in a folder, by file name and line. Raises `FinetuneError` naming file and line."""
    files = sorted(path for path in folder.glob("*.tsv") if path.name != HELD_OUT)
    if not files:
        raise FinetuneError(
            f"There are no .tsv files with sentences in {folder}: the repository and the source archive have them in"
            " resources/training, an installed program has not."
        )
    return [row for path in files for row in _read_file(path)]


def _read_file(path: Path) -> list[Row]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FinetuneError(f"The sentences in {path} cannot be read: {error}.") from error
    if tuple(lines[0].rstrip("\r").split("\t")) != COLUMNS:
        raise FinetuneError(f"{path} does not begin with the line {' '.join(COLUMNS)}, with tabs between them.")
    rows = []
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = [" ".join(cell.split()) for cell in line.split("\t")]
        if len(cells) != len(COLUMNS) or not all(cells):
            raise FinetuneError(f"Line {number} of {path} has not one text for each of {', '.join(COLUMNS)}.")
        rows.append(Row(path.stem, number, dict(zip(COLUMNS, cells, strict=True))))
    return rows


def draw(rows: Sequence[Row], per_file: int, seed: int) -> list[Row]:
    """`per_file` rows of each file at random, in the order of `rows`. Raises `FinetuneError` for a shorter file."""
    chosen = []
    for file in sorted({row.file for row in rows}):
        own = [row for row in rows if row.file == file]
        if len(own) < per_file:
            raise FinetuneError(f"{file}.tsv has {len(own)} sentences, and {per_file} were to be drawn from it.")
        # By identity, not by place: what is drawn does not depend on the order of lines.
        picked = set(random.Random(f"{seed} {file}").sample(sorted(row.row_id for row in own), per_file))
        chosen += [row for row in own if row.row_id in picked]
    return chosen


def write_held_out(folder: Path, rows: Sequence[Row]) -> Path:
    """The list of rows that are set aside. Raises `FinetuneError` when one is there: a second draw would mix sets."""
    path = folder / HELD_OUT
    if path.exists():
        raise FinetuneError(f"{path} exists: rows that a model was trained on must not be set aside afterwards.")
    lines = ["\t".join(HELD_OUT_HEADER), *(f"{row.file}\t{row.row_id}\t{row.source}" for row in rows)]
    write_atomically(path, "\n".join(lines) + "\n")
    return path


def read_held_out(folder: Path) -> dict[str, str]:
    """Ids of the rows that are set aside, and their English sentences. Raises `FinetuneError`."""
    path = folder / HELD_OUT
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FinetuneError(
            f"{path} cannot be read ({error}): set rows aside with `python -m engine.finetune split`."
        ) from error
    cells = [line.split("\t") for line in lines if line]
    if not cells or tuple(cells[0]) != HELD_OUT_HEADER or any(len(line) != 3 for line in cells):
        raise FinetuneError(f"{path} is no list of rows that are set aside.")
    return {row_id: source for _, row_id, source in cells[1:]}


def parts(rows: Sequence[Row], held_out: dict[str, str], development_per_file: int, seed: int = SEED) -> Parts:
    """Rows by use; repeated sentences are kept once. Raises `FinetuneError` when a row set aside is not there.

    A changed sentence would slip from the set-aside rows into training: that is an error too.
    """
    unique = list({row.row_id: row for row in reversed(rows)}.values())[::-1]
    absent = held_out.keys() - {row.row_id for row in unique}
    if absent:
        first = held_out[min(absent)]
        raise FinetuneError(f"{len(absent)} rows that are set aside are not among the sentences, such as '{first}'.")
    rest = [row for row in unique if row.row_id not in held_out]
    development = draw(rest, development_per_file, seed + 1)
    ids = {row.row_id for row in development}
    return Parts(
        train=tuple(row for row in rest if row.row_id not in ids),
        development=tuple(development),
        held_out=tuple(row for row in unique if row.row_id in held_out),
    )
