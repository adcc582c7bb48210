"""Tests on vLLM's CPU engine with the packaged Gemma-3-270M. They run in `make test-vllm`, which has vLLM.

Triton's interpreter has to be chosen before Triton is loaded: its tests run in a process of their own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("vllm") is None:
    collect_ignore_glob = ["test_*.py"]
elif os.environ.get("TRITON_INTERPRET") == "1":
    collect_ignore_glob = ["test_[!k]*.py"]
else:
    collect_ignore_glob = ["test_kernels.py"]

# Speech models are loaded in processes that vLLM starts: they find it in their environment.
WITHOUT_IMAGES = str(Path(__file__).with_name("without_images"))
if find_spec("torchvision") is None:
    sys.path.append(WITHOUT_IMAGES)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), WITHOUT_IMAGES)))

# Sliding layers and full ones, two heads of one layer, in no order.
HEADS = ((13, 3), (11, 2), (11, 3), (12, 1), (5, 1))
CONTEXT = 1024


@pytest.fixture(scope="session")
def model_folder() -> Path:
    from engine.models import cache_folder, resolve
    from engine.mt import hf_weights

    return hf_weights.convert(resolve("gemma-3-270m"), cache_folder(), lambda fraction, text: None)


@pytest.fixture(scope="session")
def reference(model_folder: Path) -> Any:
    """The model in transformers, with its attention weights."""
    import torch
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32, attn_implementation="eager").eval()


@pytest.fixture(scope="session", params=[False, True], ids=["one process", "own process"])
def translator(model_folder: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Eager, float32, prefills in chunks of 256 tokens; its engine in this process, and in one of its own."""
    from engine.mt.vllm import VllmTranslator

    made = VllmTranslator(
        model_folder, "few_shot", HEADS, "predicting", cache=model_folder.parent, n_ctx=CONTEXT, sessions=3,
        dtype="float32", mt_vllm_enforce_eager=True, kv_cache_gib=0.25, own_process=request.param,
        vllm={"max_num_batched_tokens": 256},
    )  # fmt: skip
    yield made
    made.close()
