"""A translator without a model: each source unit becomes one target word that looks at it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.alignatt.draft import Draft
from engine.mt.contract import Cancel, CaptureHealth, Source, TranslationError


class ScriptedTranslator:
    """Token id n stands for the n-th piece ever made; a draft continues behind its prefill, word by word.

    `nan_rate` rows of each ten are NaN, `fail` raises, `calls` counts drafts.
    """

    supports_shared_kv = False

    def __init__(self, *, nan_rate: int = 0) -> None:
        self.health = CaptureHealth()
        self.calls = 0
        self.fail = False
        self.nan_rate = nan_rate
        self._vocabulary: list[bytes] = []

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        self.calls += 1
        if self.fail:
            raise TranslationError("The model is out of order.")
        if cancel():
            return self._make([], prefill_ids, source, 0, "cancelled")
        done = len(prefill_ids)
        words = [f" {unit.strip('.,').upper()}" for unit in source.units[done:]]
        finish = "stop" if len(words) <= max_new_tokens else "length"
        return self._make(words[:max_new_tokens], prefill_ids, source, done, finish)

    def _make(self, words: list[str], prefill: Sequence[int], source: Source, first: int, finish: str) -> Draft:
        rows = np.zeros((len(words), len(source.units)), np.float32)
        for at in range(len(words)):
            rows[at, first + at] = 0.5
            if (at + self.calls) % 10 < self.nan_rate:
                rows[at] = np.nan
        self.health.count([False] * len(words), np.isnan(rows).any(axis=1).tolist())
        pieces = tuple(word.encode() for word in words)
        ids = tuple(range(len(self._vocabulary), len(self._vocabulary) + len(words)))
        self._vocabulary += pieces
        quarter = np.full(len(words), 0.25, np.float32)
        return Draft(tuple(prefill), ids, pieces, rows, quarter, quarter, np.zeros(len(words), bool), finish)

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def encode_target(self, text: str) -> list[int]:
        words = [f" {word}".encode() for word in text.split()]
        self._vocabulary += words
        return list(range(len(self._vocabulary) - len(words), len(self._vocabulary)))

    def close_session(self, session_id: str) -> None:
        pass

    def close(self) -> None:
        pass
