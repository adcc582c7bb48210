"""Examples as token ids, and batches of about equal numbers of tokens with little padding."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from engine.finetune.examples import Example
from engine.mt.prompt import PromptLayout

ANSWER_END = "\n"
IGNORED = -100


@dataclass(frozen=True, slots=True)
class Coded:
    """Token ids of an example. `learnt`: how many at the end carry loss (the rest of the answer and its end)."""

    ids: list[int]
    learnt: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded on the right. `ids`, `mask`: [examples, positions]; `labels`: the token that follows, or -100."""

    ids: torch.Tensor
    mask: torch.Tensor
    labels: torch.Tensor


def code(examples: Sequence[Example], layout: PromptLayout, tokeniser: Any) -> list[Coded]:
    """Token ids as the translator would make them: the released text and what follows it are coded apart."""
    prompts = _ids(tokeniser, [layout.render(example.source).text for example in examples])
    lead = layout.target_lead
    released = _ids(tokeniser, [lead + example.released if example.released else "" for example in examples])
    rests = _ids(tokeniser, [lead + example.rest if example.rest else "" for example in examples])
    (end,) = _ids(tokeniser, [ANSWER_END])
    begin = [tokeniser.bos_token_id]
    return [
        Coded(begin + prompt + before + rest + end, len(rest) + len(end))
        for prompt, before, rest in zip(prompts, released, rests, strict=True)
    ]


def batches(coded: Sequence[Coded], tokens: int, chance: random.Random | None = None) -> Iterator[list[Coded]]:
    """Examples of similar length, at most `tokens` with padding in a batch; in random order when `chance` is given."""
    order = list(coded)
    if chance is not None:
        chance.shuffle(order)
    order.sort(key=lambda example: len(example.ids))
    groups: list[list[Coded]] = []
    for example in order:
        if groups and (len(groups[-1]) + 1) * len(example.ids) <= tokens:
            groups[-1].append(example)
        else:
            groups.append([example])
    if chance is not None:
        chance.shuffle(groups)
    yield from groups


def stack(group: Sequence[Coded], pad: int, device: torch.device | str) -> Batch:
    """A group as tensors on a device."""
    longest = max(len(example.ids) for example in group)
    ids = torch.full((len(group), longest), pad)
    mask = torch.zeros((len(group), longest), dtype=torch.long)
    labels = torch.full((len(group), longest), IGNORED)
    for at, example in enumerate(group):
        size, learnt = len(example.ids), example.learnt
        ids[at, :size] = torch.tensor(example.ids)
        mask[at, :size] = 1
        labels[at, size - learnt - 1 : size - 1] = torch.tensor(example.ids[size - learnt :])
    return Batch(*(tensor.to(device, non_blocking=True) for tensor in (ids, mask, labels)))


def _ids(tokeniser: Any, texts: list[str]) -> list[list[int]]:
    """Tokens of plain texts: no begin mark, control tokens in them are only letters."""
    coded = tokeniser(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    return [list(ids) for ids in coded]
