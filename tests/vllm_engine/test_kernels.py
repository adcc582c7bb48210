"""The Triton kernels in Triton's interpreter, against plain torch: no GPU needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from engine.capture import reader
from engine.capture.request import RowRequest
from engine.capture.slots import Group, Read, Tracked
from engine.capture.tap import CudaTap


class HostEvent:
    """Stands in for an event of a GPU."""

    def record(self) -> None: ...

    def synchronize(self) -> None: ...


@pytest.fixture
def kernels(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor)
    monkeypatch.setattr(torch.cuda, "Event", HostEvent)
    plain = torch.empty
    monkeypatch.setattr(
        torch, "empty", lambda *shape, pin_memory=False, **given: plain(*shape, **given).fill_(float("nan"))
    )
    import engine.capture.kernels as module

    return module


def tap(
    heads: int, kv_heads: int, width: int, window: int, group: int, spec: Group, columns: Any, chosen: Any
) -> CudaTap:
    layer = SimpleNamespace(
        head_size=width, sliding_window=window, impl=SimpleNamespace(scale=0.3), num_heads=heads, num_kv_heads=kv_heads,
        kv_cache=torch.randn(40, kv_heads, spec.block_size, 2 * width),
    )  # fmt: skip
    made = CudaTap(layer, group, spec, columns, chosen)
    made.allocate()
    return made


@pytest.fixture
def taps() -> list[CudaTap]:
    torch.manual_seed(0)
    groups = Group(16, 24), Group(32)
    return [tap(4, 2, 32, 24, 0, groups[0], [2, 0], [3, 1]), tap(4, 2, 48, 0, 1, groups[1], [1], [2])]


def test_the_tap_writes_real_tokens_and_no_padding(kernels: Any, taps: list[CudaTap]) -> None:
    for one in taps:
        query = torch.randn(16, 4, one.head_dim)
        output = torch.randn(16, 4 * one.head_dim)
        slots = torch.full((16,), -1)
        slots[:11] = torch.randperm(one.slots)[:11]
        query[11:] = float("nan")
        one.write(query, None, None, output, slots)
        assert torch.equal(one.queries[slots[:11]], query[:11, list(one.heads)])
        assert torch.equal(one.outputs[slots[:11]], output.view(query.shape)[:11, list(one.heads)])
        assert torch.isfinite(one.queries).all()


def test_one_launch_gives_the_rows_of_many_requests(kernels: Any, taps: list[CudaTap]) -> None:
    for one in taps:
        one.queries.normal_()
    rng = np.random.default_rng(1)
    reads = []
    for number, (length, first, last) in enumerate(((70, 69, 80), (20, 19, 22), (40, 39, 40))):
        blocks = [rng.permutation(40)[:8].tolist(), rng.permutation(40)[:5].tolist()]
        request = RowRequest(3 + number, 10 + number, length - 2, first)
        reads.append(Read(str(number), Tracked(request, blocks, last, last), blocks, first, last))
    for read, chunk in zip(reads, reader.CudaReader(taps).read(reads), strict=True):
        rows = chunk.values()
        np.testing.assert_allclose(rows, reader.reference_rows(taps, read), atol=1e-6)
        np.testing.assert_allclose(rows.sum(-1), 1, atol=1e-5)
