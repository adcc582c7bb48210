"""Which source words each target word translates: eflomal over all sentences of a language pair at once.

eflomal draws its random numbers from the system, so links are made once and kept beside the sentences.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import regex

from engine.alignatt.units import split_units
from engine.files import write_atomically
from engine.finetune.rows import SOURCE, TARGETS, FinetuneError, Row

LINKS = "links.txt"
LINKS_HEADER = ("row", "language", "links")
STEM = 4  # characters by which words are told apart, as in calibration: few sentences need shared counts
_PIECE = regex.compile(r"\p{L}+['’](?=\p{L})|[\p{L}\p{M}\p{N}]+(?:[.,:-][\p{N}]+)*")

Words = tuple[tuple[int, ...], ...]  # for each target word the source words that it translates, ascending


@dataclass(frozen=True, slots=True)
class Linked:
    """A sentence pair in words (text between spaces) with its links."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    links: Words


def align(rows: Sequence[Row]) -> dict[tuple[str, str], Words]:
    """Links of every row and target language, by (row id, language). Raises `FinetuneError` without eflomal."""
    found: dict[tuple[str, str], Words] = {}
    for language in TARGETS:
        sides = [(_pieces(row.source, SOURCE), _pieces(row.texts[language], language)) for row in rows]
        directions = _eflomal([(source[0], target[0]) for source, target in sides])
        for row, (source, target), (forward, reverse) in zip(rows, sides, directions, strict=True):
            size = len(split_units(row.texts[language], language))
            found[row.row_id, language] = _of_words(source[1], target[1], forward, reverse, size)
    return found


def linked(row: Row, language: str, links: dict[tuple[str, str], Words]) -> Linked:
    """A row's pair with its links. Raises `FinetuneError` when they were made for another text."""
    source = tuple(split_units(row.source, SOURCE))
    target = tuple(split_units(row.texts[language], language))
    words = links.get((row.row_id, language))
    if words is None or len(words) != len(target) or any(at >= len(source) for word in words for at in word):
        raise FinetuneError(
            f"The links of '{row.source}' ({language}) are not those of this text: "
            "make them again with `python -m engine.finetune align`."
        )
    return Linked(source, target, words)


def write_links(folder: Path, links: dict[tuple[str, str], Words]) -> Path:
    """Links as lines of row id, language and one field a target word: source words with commas, or "-"."""
    lines = ["\t".join(LINKS_HEADER)]
    for (row_id, language), words in links.items():
        fields = " ".join(",".join(map(str, word)) or "-" for word in words)
        lines.append(f"{row_id}\t{language}\t{fields}")
    path = folder / LINKS
    write_atomically(path, "\n".join(lines) + "\n")
    return path


def read_links(folder: Path) -> dict[tuple[str, str], Words]:
    """The links of a folder. Raises `FinetuneError`."""
    path = folder / LINKS
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or tuple(lines[0].split("\t")) != LINKS_HEADER:
            raise ValueError("its first line is another")
        found = {}
        for line in lines[1:]:
            row_id, language, fields = line.split("\t")
            found[row_id, language] = tuple(
                tuple(int(at) for at in field.split(",")) if field != "-" else () for field in fields.split(" ")
            )
    except (OSError, ValueError) as error:
        raise FinetuneError(
            f"The links in {path} cannot be read ({error}): make them with `python -m engine.finetune align`."
        ) from error
    return found


def _pieces(text: str, language: str) -> tuple[list[str], list[int]]:
    """What is aligned: words without punctuation, elided ones apart (l' homme), and the word each belongs to."""
    pieces, owners = [], []
    for at, unit in enumerate(split_units(text, language)):
        for piece in _PIECE.findall(unit.casefold()):
            pieces.append(piece)
            owners.append(at)
    return pieces, owners


def _eflomal(said: Sequence[tuple[list[str], list[str]]]) -> list[tuple[set[tuple[int, int]], set[tuple[int, int]]]]:
    """Links of each pair as (source piece, target piece), forward and reverse."""
    try:
        from eflomal import Aligner
    except ImportError as error:
        raise FinetuneError("The aligner 'eflomal' is not installed: pip install 'surtitle[calibration]'.") from error
    source, target = ([" ".join(pair[side]) for pair in said] for side in (0, 1))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "forward", Path(folder) / "reverse"]
        Aligner(source_prefix_len=STEM, target_prefix_len=STEM).align(
            source, target, links_filename_fwd=str(files[0]), links_filename_rev=str(files[1]), quiet=True
        )
        forward, reverse = ([_read(line) for line in file.read_text().splitlines()] for file in files)
    return list(zip(forward, reverse, strict=True))


def _read(line: str) -> set[tuple[int, int]]:
    return {(int(source), int(target)) for source, target in (link.split("-") for link in line.split())}


def _of_words(
    source_owner: Sequence[int],
    target_owner: Sequence[int],
    forward: set[tuple[int, int]],
    reverse: set[tuple[int, int]],
    size: int,
) -> Words:
    """Links of words: what both directions say of a word; where they agree on nothing, what either says."""
    words = []
    for at in range(size):
        chosen: set[int] = set()
        for links in (forward & reverse, forward | reverse):
            chosen = {source_owner[source] for source, target in links if target_owner[target] == at}
            if chosen:
                break
        words.append(tuple(sorted(chosen)))
    return tuple(words)
