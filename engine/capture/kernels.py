"""Triton kernels: the tap's write, and attention rows of many queries, heads and requests in one launch."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

HEAD_FIELDS = 11
QUERY_FIELDS = 5


@triton.jit
def _copy_heads(  # type: ignore[no-untyped-def]
    query,
    output,
    slots,
    select,
    queries,
    outputs,
    token_stride,
    head_stride,
    out_token_stride,
    out_head_stride,
    slot_stride,
    n_slots,
    D: tl.constexpr,
    BLOCK: tl.constexpr,
):
    token = tl.program_id(0)
    column = tl.program_id(1)
    slot = tl.load(slots + token).to(tl.int64)
    if (slot >= 0) & (slot < n_slots):
        head = tl.load(select + column)
        lane = tl.arange(0, BLOCK)
        real = lane < D
        target = slot * slot_stride + column * D + lane
        q = tl.load(query + token * token_stride + head * head_stride + lane, mask=real)
        o = tl.load(output + token * out_token_stride + head * out_head_stride + lane, mask=real)
        tl.store(queries + target, q, mask=real)
        tl.store(outputs + target, o, mask=real)


def copy_heads(query: Any, output: Any, slots: Any, select: Any, queries: Any, outputs: Any) -> None:
    """`queries[slot] = query[token, select]`, the same for outputs, where `slot >= 0`.

    `query`: [tokens, heads, head_dim]; `output`: the same, possibly flat; shadows: [slots, selected, head_dim].
    """
    output = output.view(query.shape)
    dim = query.shape[2]
    grid = (min(query.shape[0], slots.shape[0]), select.shape[0])
    _copy_heads[grid](query, output, slots, select, queries, outputs, query.stride(0), query.stride(1),
                      output.stride(0), output.stride(1), queries.stride(0), queries.shape[0],
                      D=dim, BLOCK=triton.next_power_of_2(dim), num_warps=4)  # fmt: skip


@triton.jit(do_not_specialize=["groups", "max_blocks", "columns", "n_heads"])
def _rows(  # type: ignore[no-untyped-def]
    heads,
    scales,
    queries,
    blocks,
    out,
    groups,
    max_blocks,
    columns,
    n_heads,
    DIM: tl.constexpr,
    KEYS: tl.constexpr,
    TYPE: tl.constexpr,
):
    i = tl.program_id(0)
    j = tl.program_id(1)
    h = heads + j * 11  # HEAD_FIELDS
    q_base = tl.cast(tl.load(h + 0), tl.pointer_type(TYPE))
    k_base = tl.cast(tl.load(h + 1), tl.pointer_type(TYPE))
    q_slot, k_block, k_slot = tl.load(h + 2), tl.load(h + 3), tl.load(h + 4)
    cache_block, dim, window, group = tl.load(h + 5), tl.load(h + 6), tl.load(h + 7), tl.load(h + 8)
    table_block, column = tl.load(h + 9), tl.load(h + 10)
    scale = tl.load(scales + j)
    r = queries + i * 5  # QUERY_FIELDS
    request, position = tl.load(r + 0), tl.load(r + 1)
    source, n_source, prompt = tl.load(r + 2), tl.load(r + 3), tl.load(r + 4)
    table = blocks + (request * groups + group) * max_blocks
    lane = tl.arange(0, DIM)
    real = lane < dim
    own = tl.load(table + position // table_block) * table_block + position % table_block
    q = tl.load(q_base + own * q_slot + lane, mask=real, other=0.0).to(tl.float32)
    low = tl.where(window > 0, tl.maximum(0, position - window + 1), 0)
    target = out + (i * n_heads + column) * columns
    top = -float("inf")
    total, rest, suffix = 0.0, 0.0, 0.0
    for start in range(low // KEYS * KEYS, position + 1, KEYS):
        key = start + tl.arange(0, KEYS)
        seen = (key <= position) & (key >= low)
        slot = tl.load(table + key // table_block, mask=seen, other=0) * table_block + key % table_block
        cell = slot // cache_block * k_block + slot % cache_block * k_slot
        k = tl.load(k_base + cell[:, None] + lane[None, :], mask=seen[:, None] & real[None, :], other=0.0)
        score = tl.where(seen, tl.sum(k.to(tl.float32) * q[None, :], 1) * scale, -float("inf"))
        new_top = tl.maximum(top, tl.max(score, 0))
        weight = tl.exp(score - new_top)
        old = tl.exp(top - new_top)
        here = (key >= source) & (key < source + n_source)
        total = total * old + tl.sum(weight, 0)
        rest = rest * old + tl.sum(tl.where((key < prompt) & (here == 0), weight, 0.0), 0)
        suffix = suffix * old + tl.sum(tl.where(key >= prompt, weight, 0.0), 0)
        top = new_top
        tl.store(target + key - source, score, mask=here)
    tl.debug_barrier()
    for start in range(0, n_source, KEYS):
        index = start + tl.arange(0, KEYS)
        key = source + index
        seen = (index < n_source) & (key <= position) & (key >= low)
        score = tl.load(target + index, mask=seen, other=-float("inf"))
        tl.store(target + index, tl.exp(score - top) / total, mask=index < n_source)
    tl.store(target + n_source, rest / total)
    tl.store(target + n_source + 1, suffix / total)


def launch_rows(heads: Any, scales: Any, queries: Any, blocks: Any, out: Any, dim: int, dtype: torch.dtype) -> None:
    """Fill `out` [queries, heads, columns]: probabilities of the source columns, rest of the prompt, earlier target.

    `heads`: int64 [heads, HEAD_FIELDS]: query and key addresses, strides (query slot, key block, key slot), cache
    block, head_dim, window, group, table block, column. `queries`: int64 [queries, QUERY_FIELDS]: request, position,
    source start, source tokens, prompt tokens. `blocks`: int64 [requests, groups, most blocks].
    """
    kind = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}[dtype]
    block = triton.next_power_of_2(dim)
    grid = (queries.shape[0], heads.shape[0])
    _rows[grid](heads, scales, queries, blocks, out, blocks.shape[1], blocks.shape[2], out.shape[2], out.shape[1],
                DIM=block, KEYS=max(16, min(64, 8192 // block)), TYPE=kind, num_warps=4)  # fmt: skip
