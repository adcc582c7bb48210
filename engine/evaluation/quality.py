"""Quality of translated segments: corpus BLEU and chrF (sacrebleu), with statistics for resampling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from engine.alignatt.units import separator

BLEU_TOKENIZERS = {"zh": "zh"}


@dataclass(frozen=True, slots=True)
class Quality:
    """Corpus scores in [0, 100] and sacrebleu's signatures of them."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str


def quality(hypotheses: Sequence[str], references: Sequence[str], target_lang: str) -> Quality:
    """Score line-aligned hypotheses. Chinese is tokenised into characters for BLEU."""
    bleu = BLEU(tokenize=BLEU_TOKENIZERS.get(target_lang, "13a"))
    chrf = CHRF()
    bleu_score = bleu.corpus_score(list(hypotheses), [list(references)]).score
    chrf_score = chrf.corpus_score(list(hypotheses), [list(references)]).score
    return Quality(bleu_score, chrf_score, str(bleu.get_signature()), str(chrf.get_signature()))


def chrf_statistics(hypotheses: Sequence[str], references: Sequence[str]) -> NDArray[np.int64]:
    """sacrebleu's chrF counts of each segment, [segments, 18]; rows add up, so that any resample can be scored."""
    return np.array(CHRF()._extract_corpus_statistics(list(hypotheses), [list(references)]), np.int64)


def chrf_of(statistics: NDArray[np.int64]) -> float:
    """Corpus chrF of the segments whose counts are given."""
    return float(CHRF()._compute_score_from_stats(statistics.sum(axis=0).tolist()).score)


def spaceless(target_lang: str) -> bool:
    """Whether the language is counted in characters."""
    return not separator(target_lang)
