"""What translations are worth: chrF, sentences left in the source language, and what half sentences are filled with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from engine.finetune.rows import words


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus chrF2 in [0, 100] (sacrebleu)."""
    return float(CHRF().corpus_score(list(hypotheses), [list(references)]).score)


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU in [0, 100] (sacrebleu, 13a)."""
    return float(BLEU().corpus_score(list(hypotheses), [list(references)]).score)


def untranslated(source: str, hypothesis: str, reference: str) -> bool:
    """Whether more than half of a translation's words are the source's and not the reference's, or it is empty."""
    said = words(hypothesis)
    left = set(words(source)) - set(words(reference))
    return not said or 2 * sum(word in left for word in said) > len(said)


def unconfirmed(half: Sequence[str], whole: Sequence[str]) -> tuple[int, int, int]:
    """(words, words behind the common beginning, words that occur nowhere) of drafts of half sentences.

    Compared with the drafts of the whole sentences: what stands behind the common beginning would have had to be
    withdrawn, what occurs nowhere was invented. Case and punctuation do not count.
    """
    total = behind = nowhere = 0
    for draft, final in zip(half, whole, strict=True):
        said, said_finally = words(draft), words(final)
        same = 0
        while same < min(len(said), len(said_finally)) and said[same] == said_finally[same]:
            same += 1
        total += len(said)
        behind += len(said) - same
        nowhere += (Counter(said) - Counter(said_finally)).total()
    return total, behind, nowhere
