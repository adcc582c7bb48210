"""Scores of heads: how often the source unit that a head looks at most is the aligned one. Pure functions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.calibration.pairs import PairError, UnitLinks


@dataclass(frozen=True, slots=True)
class Hits:
    """Counts of one pair: `hits` int [heads], over `tokens` aligned target tokens."""

    hits: NDArray[np.int64]
    tokens: int


@dataclass(frozen=True, slots=True)
class Stability:
    """Two random halves ranked apart: how many of their `size` best heads agree, and how far scores differ at most."""

    size: int
    agree: int
    largest_difference: float

    def __str__(self) -> str:
        return (
            f"top {self.size} of two halves: {self.agree} agree, scores differ by at most {self.largest_difference:.3f}"
        )


def pair_hits(rows: NDArray[np.float32], pieces: Sequence[bytes], target: str, links: UnitLinks) -> Hits:
    """Hits of one teacher-forced pair.

    `rows`: mass [heads, tokens, units]; `pieces`: the target's tokens, whose text is `target` behind optional space.
    A token counts when its first visible character lies in a linked stretch (one that begins inside a character has
    none); a row without a finite maximum is a miss.
    """
    hits = np.zeros(rows.shape[0], np.int64)
    tokens = 0
    finite = np.where(np.isfinite(rows), rows, -1.0)
    looked_at = np.where(finite.max(axis=2) >= 0, finite.argmax(axis=2), -1)
    for at, position in enumerate(_first_characters(pieces, target)):
        if position is None:
            continue
        units = {unit for span, touched in links.linked if span.start <= position < span.end for unit in touched}
        if units:
            tokens += 1
            hits += np.isin(looked_at[:, at], list(units))
    return Hits(hits, tokens)


def _first_characters(pieces: Sequence[bytes], target: str) -> list[int | None]:
    """Character of `target` at which each token's visible text begins; None for tokens without any."""
    data = b"".join(pieces)
    text = data.decode("utf-8", errors="replace")
    shift = len(text) - len(text.lstrip())
    positions: list[int | None] = []
    byte = 0
    for piece in pieces:
        visible = byte + len(piece) - len(piece.lstrip())
        byte += len(piece)
        character = len(data[:visible].decode("utf-8", errors="ignore")) - shift
        begins = piece.strip() and data[visible] & 0xC0 != 0x80  # not with a later byte of a character
        positions.append(character if begins and 0 <= character < len(target) else None)
    return positions


def shares(pairs: Sequence[Hits]) -> NDArray[np.float64]:
    """Score of each head over pairs: hits divided by aligned tokens. Raises `PairError` without any."""
    tokens = sum(pair.tokens for pair in pairs)
    if not tokens:
        raise PairError("The pairs hold no aligned tokens that fit the model's context; give more or shorter ones.")
    return np.sum([pair.hits for pair in pairs], axis=0) / tokens


def split(count: int, held_out: float, seed: int) -> tuple[list[int], list[int]]:
    """Indices to rank on and indices held out, disjoint and shuffled by `seed`."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    cut = count - max(1, round(count * held_out))
    return order[:cut], order[cut:]


def stability(pairs: Sequence[Hits], seed: int, size: int = 8) -> Stability:
    """Rank two random halves apart and compare their `size` best heads."""
    first, second = (shares([pairs[at] for at in half]) for half in split(len(pairs), 0.5, seed))
    best = [set(np.argsort(-half)[:size].tolist()) for half in (first, second)]
    either = sorted(best[0] | best[1])
    return Stability(size, len(best[0] & best[1]), float(np.abs(first - second)[either].max()))
