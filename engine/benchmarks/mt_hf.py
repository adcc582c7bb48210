"""The Hugging Face seams of the MT benchmark: greedy decoding through `engine.mt.qk_capture`, rows to the host."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from transformers import DynamicCache

from engine.alignatt.heads import Head
from engine.benchmarks.mt_cases import NEW_TOKENS, Case
from engine.benchmarks.mt_subject import Subject
from engine.benchmarks.random_weights import build
from engine.mt import qk_capture
from engine.mt.attention_spec import describe

IMPLEMENTATIONS = {"hf_eager": "eager", "hf_sdpa": "sdpa", "hf_qk_fast": qk_capture.QK_IMPLEMENTATION}


class _NoRows:
    """`hf_sdpa`: the model alone."""

    options: ClassVar[dict[str, Any]] = {}

    @contextmanager
    def recording(self, start: int) -> Iterator[None]:
        yield

    def observe(self, output: Any) -> None:
        """Nothing."""

    def rows(self, first: int, count: int) -> list[Any]:
        return []


def load(subject: Subject, seam: str) -> Any:
    """The model of a seam."""
    qk_capture.register()
    dtype = getattr(torch, subject.dtype)
    if subject.random:
        return build(subject.config(), IMPLEMENTATIONS[seam], subject.device, dtype)
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(subject.folder, dtype=dtype, attn_implementation=IMPLEMENTATIONS[seam])
    return model.to(subject.device).eval()


def measure(subject: Subject, seam: str, repeats: int) -> dict[str, Any]:
    """One warm-up pass, then so many hot ones; milliseconds per generated token of every request."""
    model = load(subject, seam)
    watcher: Any = _NoRows()
    if seam != "hf_sdpa":
        attention, heads = describe(model), [Head(layer, head) for layer, head in subject.heads]
        attention.check_heads(heads)
        watcher = qk_capture.EagerSeam(attention, heads) if seam == "hf_eager" else qk_capture.QkSeam(attention, heads)
    name = "cache" if "cache" in inspect.signature(model.model.forward).parameters else "past_key_values"
    cases = subject.cases()
    rows, tokens = [], {}
    for turn in range(repeats + 1):
        for case in cases:
            began = time.perf_counter()
            made = generate(model, watcher, case, subject.device, name)
            elapsed = (time.perf_counter() - began) * 1000 / NEW_TOKENS
            tokens[case.name] = made
            if turn:
                rows.append({"case": case.name, "ms_per_token": round(elapsed, 4)})
    return {"rows": rows, "tokens": tokens}


def generate(model: Any, watcher: Any, case: Case, device: str, cache_name: str) -> list[int]:
    """Greedy tokens of one case, their rows fetched as a translator would."""
    cache, made = DynamicCache(), list[int]()
    options = {cache_name: cache, "use_cache": True, "logits_to_keep": 1, **watcher.options}
    ids = list(case.ids)
    with torch.inference_mode(), watcher.recording(len(ids) - 1):
        feed = ids
        while len(made) < NEW_TOKENS:
            output = model(input_ids=torch.tensor([feed], device=device), **options)
            watcher.observe(output)
            made.append(int(output.logits[0, -1].argmax()))
            feed = made[-1:]
        watcher.rows(len(ids) - 1, NEW_TOKENS)
    return made
