"""The test environment has torch, and not the CUDA build of several GB."""

from __future__ import annotations

import torch


def test_torch_is_the_cpu_build() -> None:
    assert torch.version.cuda is None
