"""Word aligners: where no alignments are given, a statistical aligner makes them from the pairs alone."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import regex

from engine.calibration.pairs import Link, Pair, PairError, Span

Directions = tuple[set[tuple[int, int]], set[tuple[int, int]]]  # links of a sentence, forward and reverse
Said = tuple[list[str], list[str]]  # its words, source and target
Aligner = Callable[[Sequence[Pair]], list[Pair]]
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}\p{N}]+(?:['’.-][\p{L}\p{M}\p{N}]+)*")
STEM = 4  # characters by which words are told apart: inflected forms then share their counts, which few pairs need
# The most frequent words of each side carry grammar rather than content: this many, or one in twenty of a small text.
FUNCTION_WORDS = 60


def given(pairs: Sequence[Pair]) -> list[Pair]:
    """The alignments that came with the pairs. Raises `PairError` when one has none."""
    if any(pair.links is None for pair in pairs):
        raise PairError("Some pairs come without alignments; choose the aligner 'eflomal' to make them.")
    return list(pairs)


def eflomal(pairs: Sequence[Pair]) -> list[Pair]:
    """Alignments by eflomal (a Bayesian IBM/HMM aligner, Östling and Tiedemann 2016), content words only.

    Links that both directions agree on are *sure* and decide which target words count; what either direction links to
    those words is *possible*, and counts as aligned as well (Och and Ney 2003, section 4): a compound translates
    several words. Raises `PairError` when the package is absent.
    """
    spans = [(_words(pair.source), _words(pair.target)) for pair in pairs]
    said = [
        (_texts(pair.source, both[0]), _texts(pair.target, both[1])) for pair, both in zip(pairs, spans, strict=True)
    ]
    links = _run_eflomal(said)
    trusted = _trusted(said, links)
    return [
        Pair(pair.source, pair.target, _links(both, words, linked, trusted))
        for pair, both, words, linked in zip(pairs, spans, said, links, strict=True)
    ]


def _run_eflomal(said: Sequence[Said]) -> list[Directions]:
    try:
        from eflomal import Aligner as Eflomal
    except ImportError as error:
        raise PairError("The aligner 'eflomal' is not installed: pip install 'surtitle[calibration]'.") from error
    source, target = ([" ".join(words[side]) for words in said] for side in (0, 1))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "forward", Path(folder) / "reverse"]
        Eflomal(source_prefix_len=STEM, target_prefix_len=STEM).align(
            source, target, links_filename_fwd=str(files[0]), links_filename_rev=str(files[1]), quiet=True
        )
        forward, reverse = ([_read(line) for line in file.read_text().splitlines()] for file in files)
    return list(zip(forward, reverse, strict=True))


ALIGNERS: dict[str, Aligner] = {"given": given, "eflomal": eflomal}


def _words(text: str) -> list[Span]:
    return [Span(*match.span()) for match in _WORD.finditer(text)]


def _texts(text: str, spans: Sequence[Span]) -> list[str]:
    return [text[span.start : span.end].casefold() for span in spans]


def _read(line: str) -> set[tuple[int, int]]:
    """Links of a sentence as (source word, target word)."""
    return {(int(source), int(target)) for source, target in (link.split("-") for link in line.split())}


def _trusted(words: Sequence[Said], links: Sequence[Directions]) -> Callable[[str, str], bool]:
    """Whether a sure link between two words counts: content words, and either linked elsewhere too or written alike.

    A word that occurs once is aligned by what is left over, which is wrong too often to judge a head by.
    """
    frequent = [_most_frequent([said[side] for said in words]) for side in (0, 1)]
    seen = Counter(
        (said[0][source][:STEM], said[1][target][:STEM])
        for said, (forward, reverse) in zip(words, links, strict=True)
        for source, target in forward & reverse
    )

    def trust(source: str, target: str) -> bool:
        if source in frequent[0] or target in frequent[1]:
            return False
        return source[:STEM] == target[:STEM] or seen[source[:STEM], target[:STEM]] > 1

    return trust


def _most_frequent(side: Sequence[Sequence[str]]) -> set[str]:
    counts = Counter(word for sentence in side for word in sentence)
    return {word for word, _ in counts.most_common(min(FUNCTION_WORDS, len(counts) // 20))}


def _links(
    spans: tuple[list[Span], list[Span]], said: Said, directions: Directions, trusted: Callable[[str, str], bool]
) -> tuple[Link, ...]:
    """Possible links of the target words that a sure and trusted link names."""
    sure = {target for source, target in directions[0] & directions[1] if trusted(said[0][source], said[1][target])}
    possible = sorted(link for link in directions[0] | directions[1] if link[1] in sure)
    return tuple(Link(spans[0][source], spans[1][target]) for source, target in possible)
