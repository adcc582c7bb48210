"""Word aligners: where no alignments are given, a statistical aligner makes them from the pairs alone."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import regex

from engine.calibration.pairs import Link, Pair, PairError, Span

Aligner = Callable[[Sequence[Pair]], list[Pair]]
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}\p{N}]+(?:['’.-][\p{L}\p{M}\p{N}]+)*")
STEM = 4  # characters by which words are told apart: inflected forms then share their counts, which few pairs need
# The most frequent words of each side carry grammar rather than content: this many, or one in twenty of a small text.
FUNCTION_WORDS = 150


def given(pairs: Sequence[Pair]) -> list[Pair]:
    """The alignments that came with the pairs. Raises `PairError` when one has none."""
    if any(pair.links is None for pair in pairs):
        raise PairError("Some pairs come without alignments; choose the aligner 'eflomal' to make them.")
    return list(pairs)


def eflomal(pairs: Sequence[Pair]) -> list[Pair]:
    """Alignments by eflomal (a Bayesian IBM/HMM aligner, Östling and Tiedemann 2016), both directions intersected,
    content words only. Raises `PairError` when the package is absent."""
    try:
        from eflomal import Aligner as Eflomal
    except ImportError as error:
        raise PairError("The aligner 'eflomal' is not installed: pip install 'surtitle[calibration]'.") from error
    spans = [([*_words(pair.source)], [*_words(pair.target)]) for pair in pairs]
    texts = [
        [" ".join(pair_text[span.start : span.end].casefold() for span in side) for pair_text, side in rows]
        for rows in (
            [(pair.source, both[0]) for pair, both in zip(pairs, spans, strict=True)],
            [(pair.target, both[1]) for pair, both in zip(pairs, spans, strict=True)],
        )
    ]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "forward", Path(folder) / "reverse"]
        Eflomal(source_prefix_len=STEM, target_prefix_len=STEM).align(
            texts[0], texts[1], links_filename_fwd=str(files[0]), links_filename_rev=str(files[1]), quiet=True
        )
        links = [_intersected(*lines) for lines in zip(*(file.read_text().splitlines() for file in files), strict=True)]
    grammar = [_most_frequent(side) for side in texts]
    return [
        Pair(pair.source, pair.target, _content_links(pair, both, linked, grammar))
        for pair, both, linked in zip(pairs, spans, links, strict=True)
    ]


ALIGNERS: dict[str, Aligner] = {"given": given, "eflomal": eflomal}


def _words(text: str) -> list[Span]:
    return [Span(*match.span()) for match in _WORD.finditer(text)]


def _intersected(forward: str, reverse: str) -> set[tuple[int, int]]:
    sides = [{tuple(map(int, link.split("-"))) for link in line.split()} for line in (forward, reverse)]
    return {(link[0], link[1]) for link in sides[0] & sides[1]}


def _most_frequent(side: Sequence[str]) -> set[str]:
    counts = Counter(word for line in side for word in line.split())
    return {word for word, _ in counts.most_common(min(FUNCTION_WORDS, len(counts) // 20))}


def _content_links(
    pair: Pair, spans: tuple[list[Span], list[Span]], links: set[tuple[int, int]], grammar: Sequence[set[str]]
) -> tuple[Link, ...]:
    kept = []
    for source_at, target_at in sorted(links):
        source, target = spans[0][source_at], spans[1][target_at]
        words = pair.source[source.start : source.end].casefold(), pair.target[target.start : target.end].casefold()
        if words[0] not in grammar[0] and words[1] not in grammar[1]:
            kept.append(Link(source, target))
    return tuple(kept)
