"""Proof that what a model is trained on and what it is judged by are apart, and what the sentences are like."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from engine.finetune.rows import COLUMNS, SOURCE, FinetuneError, Row, normalised, words

NEAR_GRAM = 8  # words in a row that two sentences may not share
SHORT_OVERLAP = 0.8  # of the words, for sentences too short for such a run
MANNER_GRAM = 4
REPEATED_GRAM = 5


@dataclass(frozen=True, slots=True)
class Overlap:
    """A training sentence that a judged one contains or nearly equals."""

    row: Row
    language: str
    judged: str

    def __str__(self) -> str:
        return f"{self.row.file}.tsv line {self.row.number} ({self.language}) is too close to '{self.judged}'."


class Judged:
    """Sentences that a model is judged by, for quick comparison."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self._exact: dict[str, str] = {}
        self._runs: dict[tuple[str, ...], str] = {}
        self._short: list[tuple[frozenset[str], str]] = []
        for sentence in sentences:
            said = words(sentence)
            if not said:
                continue
            self._exact[" ".join(said)] = sentence
            for run in _grams(said, NEAR_GRAM):
                self._runs[run] = sentence
            if len(said) < NEAR_GRAM:
                self._short.append((frozenset(said), sentence))

    def __len__(self) -> int:
        return len(self._exact)

    def near(self, sentence: str) -> str | None:
        """The judged sentence that equals this one, shares 8 words in a row with it, or (of under 8 words) shares
        four fifths of the words of both; None when there is none."""
        said = words(sentence)
        if (same := self._exact.get(" ".join(said))) is not None:
            return same
        for run in _grams(said, NEAR_GRAM):
            if run in self._runs:
                return self._runs[run]
        if 3 <= len(said) < NEAR_GRAM:
            own = frozenset(said)
            for other, sentence_of in self._short:
                if len(own & other) >= SHORT_OVERLAP * len(own | other) and len(other) >= 3:
                    return sentence_of
        return None


def overlaps(rows: Sequence[Row], judged: dict[str, Judged]) -> list[Overlap]:
    """Every row and language in which a training sentence is too close to a judged one of that language."""
    return [
        Overlap(row, language, near)
        for row in rows
        for language, sentences in judged.items()
        if language in row.texts and (near := sentences.near(row.texts[language])) is not None
    ]


def alone(rows: Sequence[Row]) -> list[Row]:
    """Rows that no other row is too close to, in any language: only they can be set aside from the others."""
    holders: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    short: dict[str, list[tuple[frozenset[str], Row]]] = {language: [] for language in COLUMNS}
    for row in rows:
        for language, text in row.texts.items():
            said = words(text)
            for run in (*_grams(said, NEAR_GRAM), tuple(said)):
                holders.setdefault((language, run), set()).add(row.row_id)
            if len(frozenset(said)) >= 3 and len(said) < NEAR_GRAM:
                short[language].append((frozenset(said), row))
    beside = {row_id for ids in holders.values() if len(ids) > 1 for row_id in ids}
    for sentences in short.values():
        for at, (own, row) in enumerate(sentences):
            for other, second in sentences[:at]:
                if len(own & other) >= SHORT_OVERLAP * len(own | other):
                    beside |= {row.row_id, second.row_id}
    return [row for row in rows if row.row_id not in beside]


def read_talks(folder: Path) -> dict[str, list[str]]:
    """Sentences of a folder with one text file a language (`en.txt`, `de.txt`, …), line by line."""
    found = {language: folder / f"{language}.txt" for language in COLUMNS if (folder / f"{language}.txt").is_file()}
    if SOURCE not in found:
        raise FinetuneError(f"There is no {SOURCE}.txt in {folder}.")
    try:
        return {language: path.read_text(encoding="utf-8").splitlines() for language, path in found.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise FinetuneError(f"The talks in {folder} cannot be read: {error}.") from error


def judged_sentences(held_out: Sequence[Row], talks: Sequence[dict[str, list[str]]]) -> dict[str, Judged]:
    """What a model is judged by, in each language: the rows set aside and the talks."""
    return {
        language: Judged(
            [row.texts[language] for row in held_out] + [line for talk in talks for line in talk.get(language, [])]
        )
        for language in COLUMNS
    }


@dataclass(frozen=True, slots=True)
class Manner:
    """What the sentences of one language are like. Lengths in words; `distinct`: different 4-grams of all 4-grams."""

    sentences: int
    words: int
    shortest: int
    median: float
    longest: int
    distinct: float
    duplicates: int
    repeated: tuple[tuple[str, int], ...]


def manner(texts: Sequence[str]) -> Manner:
    """Statistics of sentences of one language. `repeated`: the commonest 5-grams, which show templates."""
    said = [words(text) for text in texts]
    lengths = [len(sentence) for sentence in said]
    grams = Counter(gram for sentence in said for gram in _grams(sentence, MANNER_GRAM))
    long_grams = Counter(gram for sentence in said for gram in _grams(sentence, REPEATED_GRAM))
    same = Counter(normalised(text) for text in texts)
    return Manner(
        sentences=len(texts),
        words=sum(lengths),
        shortest=min(lengths),
        median=statistics.median(lengths),
        longest=max(lengths),
        distinct=len(grams) / max(1, grams.total()),
        duplicates=sum(count - 1 for count in same.values()),
        repeated=tuple((" ".join(gram), count) for gram, count in long_grams.most_common(5) if count > 1),
    )


def _grams(said: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    return (tuple(said[at : at + size]) for at in range(len(said) - size + 1))
