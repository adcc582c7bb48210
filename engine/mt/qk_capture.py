"""Attention rows of chosen heads out of transformers: two seams that must agree.

`EagerSeam` asks the model for all its attention weights: slow, the reference. `QkSeam` runs fused attention and keeps,
of the chosen heads only, each query as attention receives it (after norm and rotary embedding) with the keys of the
cache; rows are computed afterwards for all tokens at once: softmax(scale · q·kᵀ) over the positions a query sees.

Both need a cache that keeps every position in every layer, so that column = position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from engine.alignatt.heads import Head
from engine.mt.attention_spec import AttentionSpecError, LayerAttention, ModelAttention

QK_IMPLEMENTATION = "surtitle_qk"
_TAP = "_surtitle_tap"

Row = NDArray[np.float32]


class Seam(Protocol):
    """A way to get rows. `implementation`: the attention implementation that the model must run with.

    `options`: what every forward pass needs besides its tokens.
    """

    implementation: str

    options: dict[str, Any]

    def recording(self, start: int, check: bool = False) -> AbstractContextManager[None]:
        """Record the forward passes made inside, from the query at position `start` on.

        With `check`, attention is rebuilt from what was kept and compared with the model's own: `worst_error`.
        """
        ...

    def observe(self, output: Any) -> None:
        """Take what a forward pass has returned."""
        ...

    def rows(self, first: int, count: int) -> list[Row | None]:
        """Rows of the queries at positions `first`, …, each float32 [heads, positions] or None if it was not recorded.

        To be called inside `recording`.
        """
        ...

    @property
    def worst_error(self) -> float:
        """Of a recording with `check`: the largest relative error of a layer; infinite where none was compared."""
        ...


class EagerSeam:
    """The reference: the attention weights that the model itself returns."""

    implementation = "eager"
    worst_error = 0.0  # it is what others are compared with

    def __init__(self, attention: ModelAttention, heads: Sequence[Head]) -> None:
        self.options: dict[str, Any] = {"output_attentions": True}
        self._attention = attention
        self._heads = heads
        self._start = 0
        self._weights: dict[int, Tensor] = {}

    @contextmanager
    def recording(self, start: int, check: bool = False) -> Iterator[None]:
        """See `Seam.recording`."""
        self._start, self._weights = start, {}
        try:
            yield
        finally:
            self._weights = {}

    def observe(self, output: Any) -> None:
        """`output.attentions` holds one tensor for each layer: [1, query heads, queries, positions]."""
        weights = output.attentions
        if not weights or len(weights) != len(self._attention.layers) or any(layer is None for layer in weights):
            return
        queries, positions = weights[0].shape[2:]
        for query in range(queries):
            position = positions - queries + query
            if position >= self._start:
                rows = [weights[head.layer][0, head.head, query, : position + 1] for head in self._heads]
                self._weights[position] = torch.stack(rows).float()

    def rows(self, first: int, count: int) -> list[Row | None]:
        """See `Seam.rows`."""
        found = [self._weights.get(first + token) for token in range(count)]
        return [None if row is None else row.cpu().numpy() for row in found]


class QkSeam:
    """The fast seam: see the module."""

    implementation = QK_IMPLEMENTATION

    def __init__(self, attention: ModelAttention, heads: Sequence[Head]) -> None:
        self.options: dict[str, Any] = {}
        self._n_heads = len(heads)
        by_layer: dict[int, list[int]] = {}
        for at, head in enumerate(heads):
            by_layer.setdefault(head.layer, []).append(at)
        self._taps = [
            _LayerTap(attention.layers[layer], [heads[i].head for i in at], at) for layer, at in by_layer.items()
        ]

    @contextmanager
    def recording(self, start: int, check: bool = False) -> Iterator[None]:
        """See `Seam.recording`."""
        for tap in self._taps:
            tap.reset(start, check)
            tap.layer.module.__dict__[_TAP] = tap
        try:
            yield
        finally:
            for tap in self._taps:
                tap.layer.module.__dict__.pop(_TAP, None)
                tap.queries, tap.keys = [], None

    def observe(self, output: Any) -> None:
        """Nothing to do: the taps have seen everything."""

    def rows(self, first: int, count: int) -> list[Row | None]:
        """See `Seam.rows`."""
        recorded = [all(tap.has(first + token) for tap in self._taps) for token in range(count)]
        tokens = [token for token in range(count) if recorded[token]]
        if not tokens:
            return [None] * count
        low, high = first + tokens[0], first + tokens[-1] + 1
        stacked = np.empty((self._n_heads, high - low, high), np.float32)
        for tap in self._taps:
            stacked[tap.at] = tap.rows(low, high).cpu().numpy()
        return [
            stacked[:, first + token - low, : first + token + 1] if recorded[token] else None for token in range(count)
        ]

    @property
    def worst_error(self) -> float:
        """See `Seam.worst_error`."""
        return max(tap.error for tap in self._taps)


@dataclass(slots=True)
class _LayerTap:
    """Queries of some heads of one layer, in the order of their positions, and the keys of its cache.

    `at`: where the heads stand in the head set. `start`: the first position worth keeping; `first`: the first kept.
    """

    layer: LayerAttention
    heads: list[int]
    at: list[int]
    start: int = 0
    first: int = 0
    queries: list[Tensor] = field(default_factory=list)
    keys: Tensor | None = None
    picked: Tensor | None = None  # `heads` on the model's device
    check: bool = False
    error: float = float("inf")

    def reset(self, start: int, check: bool) -> None:
        self.start, self.first, self.queries, self.keys = start, 0, [], None
        self.check, self.error = check, float("inf")

    def take(self, query: Tensor, key: Tensor, value: Tensor, output: Tensor, options: dict[str, Any]) -> None:
        """`query` [1, query heads, queries, width], `key` and `value` [1, kv heads, positions, width]."""
        positions = key.shape[2]
        new = min(query.shape[2], positions - self.start)
        if new <= 0:
            return
        if not self.queries:
            self._verify(query, key, options)
            self.first = positions - new
        if self.picked is None:
            self.picked = torch.tensor(self.heads, device=query.device)
        self.queries.append(query[0, :, query.shape[2] - new :].index_select(0, self.picked))
        self.keys = key
        if self.check:
            self._compare(value, output)

    def _verify(self, query: Tensor, key: Tensor, options: dict[str, Any]) -> None:
        """What attention is called with must be what the spec has read from the module."""
        layer = self.layer
        found = (options.get("scaling"), options.get("sliding_window") or None, query.shape[1], key.shape[1])
        meant = (layer.scale, layer.window, layer.query_heads, layer.query_heads // layer.groups)
        for what, is_, said in zip(("scale", "window", "query heads", "key heads"), found, meant, strict=True):
            if is_ != said:
                raise AttentionSpecError(
                    f"Attention of layer {layer.layer} runs with {what} {is_}, but its module says {said}; "
                    "use the versions of transformers that the extra 'torch' names."
                )

    def has(self, position: int) -> bool:
        """Whether the query at a position was kept."""
        return self.keys is not None and self.first <= position < self.keys.shape[2]

    def rows(self, low: int, high: int) -> Tensor:
        """Rows of the queries at positions [low, high), all of them kept: float32 [heads, high - low, high]."""
        assert self.keys is not None
        keys = self.keys[0, [self.layer.kv_head(head) for head in self.heads], :high].float()
        queries = torch.cat(self.queries, dim=1)[:, low - self.first : high - self.first].float()
        scores = torch.matmul(queries, keys.transpose(1, 2)) * self.layer.scale
        column = torch.arange(high, device=keys.device)
        position = torch.arange(low, high, device=keys.device)[:, None]
        hidden = column > position
        if self.layer.window is not None:
            hidden |= column <= position - self.layer.window
        return torch.softmax(scores.masked_fill_(hidden, -torch.inf), dim=-1)

    def _compare(self, value: Tensor, output: Tensor) -> None:
        """Relative error of softmax(q·k)·v of the last query; `output`: attention's own [1, queries, heads, width]."""
        assert self.keys is not None
        last = self.keys.shape[2] - 1
        values = value[0, [self.layer.kv_head(head) for head in self.heads]].float()
        rebuilt = torch.matmul(self.rows(last, last + 1), values)[:, 0]
        own = output[0, -1, self.heads].float()
        error = float((rebuilt - own).norm() / own.norm().clamp_min(1e-9))
        self.error = error if self.error == float("inf") else max(self.error, error)


def _tapped_attention(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **options: Any
) -> tuple[Tensor, None]:
    output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    tap = module.__dict__.get(_TAP)
    if tap is not None:
        tap.take(query, key, value, output, options)
    return output, None


def register() -> None:
    """Make the tapped attention known to transformers under a name of its own, with the masks of sdpa."""
    AttentionInterface.register(QK_IMPLEMENTATION, _tapped_attention)
    AttentionMaskInterface.register(QK_IMPLEMENTATION, sdpa_mask)
