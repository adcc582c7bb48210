"""Scores of an adapter beside the few-shot base, on sentences that nothing was trained or tuned on."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.alignatt.units import separator, split_units
from engine.finetune.export import put
from engine.finetune.generate import Greedy
from engine.finetune.rows import SOURCE, TARGETS, FinetuneError, Row
from engine.finetune.scores import bleu, chrf, unconfirmed, untranslated
from engine.finetune.weights import LowRank, add_low_rank, plain
from engine.mt.contract import Source
from engine.mt.hf_weights import Loaded
from engine.mt.prompt import FewShotLayout, PromptLayout, TalksLayout

BASE, ADAPTED = "few-shot base", "adapted"
HALF_TOKENS = 48


@dataclass(frozen=True, slots=True)
class Set:
    """Sentences to translate in one direction. `name`: "held-out" or "talks"."""

    name: str
    language: str
    sources: tuple[str, ...]
    references: tuple[str, ...]


def sets(held_out: Sequence[Row], talks: dict[str, list[str]]) -> list[Set]:
    """The rows set aside in every language, and the talks in those that they come in."""
    found = [
        Set(
            "held-out",
            language,
            tuple(row.source for row in held_out),
            tuple(row.texts[language] for row in held_out),
        )
        for language in TARGETS
    ]
    for language in TARGETS:
        if language in talks:
            if len(talks[language]) != len(talks[SOURCE]):
                raise FinetuneError(f"The talks have {len(talks[language])} lines in {language}, not as in {SOURCE}.")
            found.append(Set("talks", language, tuple(talks[SOURCE]), tuple(talks[language])))
    return found


def evaluate(
    loaded: Loaded, numbers: dict[str, Any], shape: LowRank, chosen: Sequence[Set], say: Callable[[str], None]
) -> tuple[dict[str, Any], list[list[str]]]:
    """Scores by system, set and language; and every output as (system, set, language, source, reference, whole, half).

    The base translates with worked examples, the adapted model with its own prompt; both greedily.
    """
    greedy = Greedy(loaded.model, loaded.tokeniser, loaded.end_ids)
    scores: dict[str, Any] = {}
    outputs: list[list[str]] = []
    add_low_rank(loaded.model, shape)
    put(loaded.model, numbers)
    with plain(loaded.model):
        scores[BASE] = _system(greedy, FewShotLayout(), BASE, chosen, outputs, say)
    scores[ADAPTED] = _system(greedy, TalksLayout(), ADAPTED, chosen, outputs, say)
    return scores, outputs


def _system(
    greedy: Greedy,
    layout: PromptLayout,
    system: str,
    chosen: Sequence[Set],
    outputs: list[list[str]],
    say: Callable[[str], None],
) -> dict[str, Any]:
    """All sets in one go: whole sentences, then half ones."""
    started = time.perf_counter()
    places = [(part, at) for part in chosen for at in range(len(part.sources))]
    units = [split_units(part.sources[at], SOURCE) for part, at in places]
    whole = greedy.translate(
        [_source(said, part.language) for said, (part, _) in zip(units, places, strict=True)], layout
    )
    half = greedy.translate(
        [_source(said[: max(1, len(said) // 2)], part.language) for said, (part, _) in zip(units, places, strict=True)],
        layout,
        HALF_TOKENS,
    )
    scores: dict[str, Any] = {}
    start = 0
    for part in chosen:
        end = start + len(part.sources)
        mine, mine_half, start = whole[start:end], half[start:end], end
        total, behind, nowhere = unconfirmed(mine_half, mine)
        left = sum(untranslated(*texts) for texts in zip(part.sources, mine, part.references, strict=True))
        scores[f"{part.name} {part.language}"] = {
            "sentences": len(mine),
            "chrf": round(chrf(mine, part.references), 2),
            "bleu": round(bleu(mine, part.references), 2),
            "untranslated": left,
            "empty": sum(not text for text in mine),
            "half_words": total,
            "half_unconfirmed": round(behind / max(1, total), 4),
            "half_invented": round(nowhere / max(1, total), 4),
        }
        outputs += [
            [system, part.name, part.language, *texts]
            for texts in zip(part.sources, part.references, mine, mine_half, strict=True)
        ]
        say(f"{system}: {part.name} {part.language} {scores[f'{part.name} {part.language}']}")
    scores["seconds"] = round(time.perf_counter() - started, 1)
    return scores


def _source(units: Sequence[str], language: str) -> Source:
    return Source(tuple(units), SOURCE, language, separator(SOURCE))
