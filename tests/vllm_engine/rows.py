"""Rows as transformers computes them, in the columns of `capture.request.Rows`."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from engine.capture.request import RowRequest


def reference_rows(
    model: Any, ids: list[int], heads: tuple[tuple[int, int], ...], request: RowRequest, count: int
) -> Any:
    """[queries, heads, source tokens + 2] of the queries from `request.first_query` on."""
    with torch.inference_mode():
        attentions = model(torch.tensor([ids]), output_attentions=True).attentions
    start, end = request.source_start, request.source_start + request.source_tokens
    rows = []
    for layer, head in heads:
        whole = attentions[layer][0, head].numpy()[request.first_query : request.first_query + count]
        rest = whole[:, :start].sum(-1) + whole[:, end : request.prompt_tokens].sum(-1)
        rows.append(np.column_stack([whole[:, start:end], rest, whole[:, request.prompt_tokens :].sum(-1)]))
    return np.stack(rows, 1)
