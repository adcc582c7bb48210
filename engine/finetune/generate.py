"""Greedy translations of many sources at once, for scores; the translator itself is in `engine.mt`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from engine.mt.contract import Source
from engine.mt.prompt import PromptLayout

NEW_TOKENS = 96
BATCH = 400


class Greedy:
    """A model that answers prompts in batches. An answer ends at its first line break, as in the translator."""

    def __init__(self, model: Any, tokeniser: Any, end_ids: Sequence[int], *, batch: int = BATCH) -> None:
        self._model, self._tokeniser, self._batch = model, tokeniser, batch
        breaks = [token for text, token in tokeniser.get_vocab().items() if "\n" in text or text == "<0x0A>"]
        self._ends = sorted({*breaks, *end_ids})
        self._pad = int(tokeniser.pad_token_id or 0)

    def translate(self, sources: Sequence[Source], layout: PromptLayout, new_tokens: int | None = None) -> list[str]:
        """One line for each source, in their order, without spaces around."""
        texts = [layout.render(source).text for source in sources]
        coded = self._tokeniser(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        prompts = [[self._tokeniser.bos_token_id, *ids] for ids in coded]
        order = sorted(range(len(prompts)), key=lambda at: len(prompts[at]))
        answers = [""] * len(prompts)
        self._model.eval()
        for start in range(0, len(order), self._batch):
            chosen = order[start : start + self._batch]
            for at, answer in zip(
                chosen, self._answers([prompts[at] for at in chosen], new_tokens or NEW_TOKENS), strict=True
            ):
                answers[at] = answer
        return answers

    def _answers(self, prompts: Sequence[list[int]], new_tokens: int) -> list[str]:
        width = max(map(len, prompts))
        device = self._model.device
        ids = torch.tensor([[self._pad] * (width - len(prompt)) + prompt for prompt in prompts], device=device)
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts], device=device)
        half = torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")
        with torch.inference_mode(), half:
            made = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                do_sample=False,
                max_new_tokens=new_tokens,
                eos_token_id=self._ends,
                pad_token_id=self._pad,
            )
        texts: list[str] = self._tokeniser.batch_decode(made[:, width:], skip_special_tokens=True)
        return [text.split("\n", 1)[0].strip() for text in texts]
