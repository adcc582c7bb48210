"""Sentence pairs with word links, in the units that the runtime uses."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.alignatt.units import split_units
from engine.files import why

logger = logging.getLogger("surtitle.calibration")

QUOTES = "\"'“”„‟«»‘’"


class PairError(Exception):
    """Pairs that cannot be used; the message is one sentence with the line."""


class MismatchError(PairError):
    """Alignments that do not fit the words they came with."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, end) of a text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Link:
    """Source characters that a stretch of target characters translates."""

    source: Span
    target: Span


@dataclass(frozen=True, slots=True)
class Pair:
    """One sentence and its translation; `links` is None until an aligner has made them."""

    source: str
    target: str
    links: tuple[Link, ...] | None = None


@dataclass(frozen=True, slots=True)
class UnitLinks:
    """A pair as the model sees it: source units, and for each linked target stretch the units it may look at."""

    units: tuple[str, ...]
    linked: tuple[tuple[Span, frozenset[int]], ...]


MISMATCHED_MOST = 0.1  # made alignments misspell a word now and then; more than this and the file is not what it says


def read_pairs(path: Path) -> list[Pair]:
    """Pairs of a file; a repeated one is kept once. Raises `PairError`.

    JSON lines with `source_text`, `target_text` and optionally words and `alignments`, or tab-separated texts. A pair
    whose alignments do not match its words is left out, which is logged; a tenth of such pairs is an error.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise PairError(f"The pairs in {path} cannot be read: {why(error)}.") from error
    pairs: dict[tuple[str, str], Pair] = {}
    mismatched: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            pair = _from_json(line, number) if line.lstrip().startswith("{") else _from_tabs(line, number)
        except MismatchError as error:
            mismatched.append(str(error))
            continue
        pairs.setdefault((pair.source, pair.target), pair)
    if len(mismatched) > MISMATCHED_MOST * (len(pairs) + len(mismatched)):
        raise PairError(f"{mismatched[0]} {len(mismatched)} lines of {path} are like that.")
    if mismatched:
        logger.warning("%d pairs of %s are left out. %s", len(mismatched), path, mismatched[0])
    if not pairs:
        raise PairError(f"{path} holds no pairs.")
    return list(pairs.values())


def without(pairs: Sequence[Pair], sources: Iterable[str]) -> list[Pair]:
    """Pairs whose source is none of the given sentences (compared without case and spacing)."""
    excluded = {_folded(source) for source in sources}
    return [pair for pair in pairs if _folded(pair.source) not in excluded]


def unit_links(pair: Pair, source_lang: str) -> UnitLinks:
    """Links of a pair as source units: a link's units are those that its source characters touch."""
    units = tuple(split_units(pair.source, source_lang))
    starts, position = [], 0
    for unit in units:
        position = pair.source.index(unit.split(" ")[0].strip(), position)
        starts.append(position)
        position += len(unit.strip())
    ends = [*starts[1:], len(pair.source)]
    linked = []
    for link in pair.links or ():
        touched = frozenset(
            at for at in range(len(units)) if starts[at] < link.source.end and link.source.start < ends[at]
        )
        if touched:
            linked.append((link.target, touched))
    return UnitLinks(units, tuple(linked))


def word_spans(text: str, words: Sequence[str]) -> list[Span]:
    """Where each word stands in the text, in order; quotation marks may differ (a lone one that the text lacks gets an
    empty span). Raises `ValueError` naming the first word that is not there."""
    spans, position = [], 0
    for word in words:
        found = next((form for form in (word, word.strip(QUOTES)) if text.find(form, position) >= 0), None)
        if found is None:
            raise ValueError(f"'{word}'")
        start = text.find(found, position)
        position = start + len(found)
        spans.append(Span(start, position))
    return spans


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _from_tabs(line: str, number: int) -> Pair:
    parts = [part.strip() for part in line.split("\t")]
    if len(parts) != 2 or not all(parts):
        raise PairError(f"Line {number} is not a source and a target with a tab between them.")
    return Pair(parts[0], parts[1])


def _from_json(line: str, number: int) -> Pair:
    try:
        data = json.loads(line)
        source, target = str(data["source_text"]).strip(), str(data["target_text"]).strip()
    except (ValueError, KeyError, TypeError) as error:
        raise PairError(f"Line {number} is not a pair with 'source_text' and 'target_text'.") from error
    if not source or not target:
        raise PairError(f"Line {number} has an empty side.")
    if "alignments" not in data:
        return Pair(source, target)
    try:
        return Pair(source, target, _links(data, source, target))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise MismatchError(f"Line {number}: alignments do not match their words ({error}).") from error


def _links(data: dict[str, Any], source: str, target: str) -> tuple[Link, ...]:
    source_spans = word_spans(source, data["source_words"])
    target_spans = word_spans(target, data["target_words"])
    links = []
    for row in data["alignments"]:
        source_start, source_end, target_start, target_end = row[:4]
        if not (0 <= source_start < source_end <= len(source_spans)):
            raise ValueError(f"source words {source_start} to {source_end} of {len(source_spans)}")
        if not (0 <= target_start < target_end <= len(target_spans)):
            raise ValueError(f"target words {target_start} to {target_end} of {len(target_spans)}")
        links.append(
            Link(
                Span(source_spans[source_start].start, source_spans[source_end - 1].end),
                Span(target_spans[target_start].start, target_spans[target_end - 1].end),
            )
        )
    return tuple(links)
