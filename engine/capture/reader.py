"""Rows out of the shadows: which columns of the softmax a query saw, for one or many reads at a time.

`CpuReader` is plain torch in float32 and the reference; `CudaReader` does all reads of a step in one launch and copies
the result to pinned memory without waiting for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from engine.capture.slots import Read, slots_of
from engine.capture.tap import LayerTap


class Chunk(Protocol):
    """Rows of the queries [first, last) of one request: float32 [queries, this rank's heads, source tokens + 2]."""

    first: int

    def values(self) -> NDArray[np.float32]: ...


@dataclass(slots=True)
class ReadyChunk:
    first: int
    rows: NDArray[np.float32]

    def values(self) -> NDArray[np.float32]:
        return self.rows


def visible(tap: LayerTap, first: int, last: int) -> tuple[int, torch.Tensor]:
    """The first key position that any query of [first, last) sees, and who sees what: bool [queries, keys]."""
    low = max(0, first - tap.window + 1) if tap.window else 0
    queries = torch.arange(first, last, device=tap.queries.device)[:, None]
    keys = torch.arange(low, last, device=tap.queries.device)[None]
    seen = keys <= queries
    return low, seen & (queries - keys < tap.window) if tap.window else seen


def probabilities(tap: LayerTap, read: Read, index: int) -> tuple[int, torch.Tensor, torch.Tensor]:
    """First key position, softmax over the keys from there on (float32 [queries, keys]), and the keys' slots."""
    low, seen = visible(tap, read.first, read.last)
    slots = torch.from_numpy(slots_of(read.blocks[tap.group], tap.spec.block_size, low, read.last))
    slots = slots.to(tap.queries.device)
    queries = tap.queries[slots[read.first - low :], index].float()
    scores = queries @ tap.keys(slots, tap.kv_heads[index]).float().T * tap.scale
    return low, torch.softmax(scores.masked_fill(~seen, float("-inf")), -1), slots


def reference_rows(taps: Sequence[LayerTap], read: Read) -> NDArray[np.float32]:
    """Rows of one read in plain torch: [queries, heads, source tokens + 2]; heads in the order of the taps."""
    request, heads = read.tracked.request, sum(len(tap.heads) for tap in taps)
    rows = np.zeros((read.last - read.first, heads, request.source_tokens + 2), np.float32)
    at = 0
    for tap in taps:
        for index in range(len(tap.heads)):
            low, p, _ = probabilities(tap, read, index)
            whole = torch.zeros(p.shape[0], max(read.last, request.prompt_tokens), device=p.device)
            whole[:, low : read.last] = p
            start, end = request.source_start, request.source_start + request.source_tokens
            rows[:, at, :-2] = whole[:, start:end].cpu()
            rows[:, at, -2] = (whole[:, :start].sum(-1) + whole[:, end : request.prompt_tokens].sum(-1)).cpu()
            rows[:, at, -1] = whole[:, request.prompt_tokens :].sum(-1).cpu()
            at += 1
    return rows


class CpuReader:
    """Reads in plain torch, at once."""

    def __init__(self, taps: Sequence[LayerTap]) -> None:
        self._taps = taps

    def read(self, reads: Sequence[Read]) -> list[Chunk]:
        return [ReadyChunk(read.first, reference_rows(self._taps, read)) for read in reads]


@dataclass(slots=True)
class _Batch:
    """The result of one launch on its way to the host."""

    host: torch.Tensor
    done: torch.cuda.Event

    def wait(self) -> NDArray[np.float32]:
        self.done.synchronize()
        return self.host.numpy()


@dataclass(slots=True)
class _DeviceChunk:
    first: int
    batch: _Batch
    rows: slice
    columns: int

    def values(self) -> NDArray[np.float32]:
        return self.batch.wait()[self.rows, :, : self.columns].copy()


class CudaReader:
    """Reads through the Triton kernel: one launch and one copy back, however many requests, heads and layers."""

    def __init__(self, taps: Sequence[LayerTap]) -> None:
        fields: list[list[int]] = []
        scales: list[float] = []
        for tap in taps:
            blocks, _, slots, _ = tap.cache.stride()
            for index, kv_head in enumerate(tap.kv_heads):
                fields.append([
                    tap.queries.data_ptr() + index * tap.head_dim * tap.queries.element_size(),
                    tap.cache.data_ptr() + kv_head * tap.cache.stride(1) * tap.cache.element_size(),
                    tap.queries.stride(0), blocks, slots, tap.cache.shape[2], tap.head_dim, tap.window,
                    tap.group, tap.spec.block_size, len(fields),
                ])  # fmt: skip
                scales.append(tap.scale)
        self._device, self._dtype = taps[0].queries.device, taps[0].queries.dtype
        self._heads = torch.tensor(fields, dtype=torch.int64, device=self._device)
        self._scales = torch.tensor(scales, dtype=torch.float32, device=self._device)
        self._dim = max(tap.head_dim for tap in taps)

    def read(self, reads: Sequence[Read]) -> list[Chunk]:
        from engine.capture.kernels import QUERY_FIELDS, launch_rows

        if not reads:
            return []
        queries, blocks = _tables(reads, QUERY_FIELDS)
        packed = torch.from_numpy(np.concatenate([queries.ravel(), blocks.ravel()])).pin_memory()
        packed = packed.to(self._device, non_blocking=True)
        columns = max(read.tracked.request.source_tokens for read in reads) + 2
        out = torch.empty((len(queries), len(self._heads), columns), device=self._device)
        launch_rows(self._heads, self._scales, packed[: queries.size].view(queries.shape),
                    packed[queries.size :].view(blocks.shape), out, self._dim, self._dtype)  # fmt: skip
        host = torch.empty(out.shape, dtype=out.dtype, pin_memory=True)
        host.copy_(out, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        batch, at = _Batch(host, done), 0
        chunks: list[Chunk] = []
        for read in reads:
            count = read.last - read.first
            width = read.tracked.request.source_tokens + 2
            chunks.append(_DeviceChunk(read.first, batch, slice(at, at + count), width))
            at += count
        return chunks


def _tables(reads: Sequence[Read], fields: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What the kernel reads: one row a query, and block tables [requests, groups, most blocks]."""
    groups = len(reads[0].tracked.blocks)
    most = max(len(ids) for read in reads for ids in read.blocks)
    blocks = np.zeros((len(reads), groups, most), np.int64)
    queries = np.zeros((sum(read.last - read.first for read in reads), fields), np.int64)
    at = 0
    for number, read in enumerate(reads):
        for group, ids in enumerate(read.blocks):
            blocks[number, group, : len(ids)] = ids
        request, count = read.tracked.request, read.last - read.first
        part = queries[at : at + count]
        part[:, 0], part[:, 1] = number, np.arange(read.first, read.last)
        part[:, 2:5] = request.source_start, request.source_tokens, request.prompt_tokens
        at += count
    return queries, blocks
