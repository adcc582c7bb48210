"""What the MT benchmark measures: a model with weights, or a named architecture with seeded random ones."""

from __future__ import annotations

import getpass
import platform
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.benchmarks.architectures import ARCHITECTURES, LOAD_FORMAT, Heads
from engine.benchmarks.mt_cases import Case, model_cases, random_cases
from engine.capture.settings import NO_QUANTIZATION, EngineSettings


class BenchmarkError(Exception):
    """A benchmark that cannot be run; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The model of a benchmark on "cuda" or "cpu". `architecture` is empty when it has real weights.

    `tensor_parallel`: ranks of vLLM's engines; `vllm`: further arguments of theirs; `quantization`, `unvalidated` and
    `own_process`: as in `EngineSettings`.
    """

    folder: Path
    heads: Heads
    device: str
    dtype: str
    architecture: str = ""
    tensor_parallel: int = 1
    vllm: Mapping[str, Any] = field(default_factory=dict)
    quantization: str = NO_QUANTIZATION
    unvalidated: bool = False
    own_process: bool = False

    @property
    def random(self) -> bool:
        return bool(self.architecture)

    def settings(self, **changes: Any) -> EngineSettings:
        """An engine for this subject."""
        vllm: dict[str, Any] = {}
        capture = changes.get("capture", True)
        if self.random:
            module = f"engine.benchmarks.random_{self.device}"
            vllm = {"load_format": LOAD_FORMAT, "worker_cls": f"{module}.{'Captured' if capture else 'Plain'}"}
        base: dict[str, Any] = {
            "model": str(self.folder), "heads": self.heads, "dtype": self.dtype, "max_model_len": 2048,
            "kv_cache_gib": 2.0 if self.device == "cuda" else 0.25, "vllm": {**vllm, **self.vllm}, "check_every": 0,
            "tensor_parallel": self.tensor_parallel, "own_process": self.own_process or self.tensor_parallel > 1,
            "quantization": self.quantization, "allow_unvalidated_vllm": self.unvalidated,
        }  # fmt: skip
        return EngineSettings(**{**base, **changes})

    def config(self) -> Any:
        from transformers import AutoConfig

        return AutoConfig.from_pretrained(self.folder)

    def cases(self) -> list[Case]:
        """The 16 prompts in this model's tokens."""
        if self.random:
            return random_cases(int(self.config().get_text_config().vocab_size))
        from transformers import AutoTokenizer

        from engine.mt.hf_tokens import HfTokens
        from engine.mt.prompt import ChatLayout, FewShotLayout

        text = self.config().get_text_config()
        tokens = HfTokens(AutoTokenizer.from_pretrained(self.folder), str(text.model_type), ())
        return model_cases(tokens, ChatLayout(tokens.chat_template) if tokens.has_chat_template else FewShotLayout())


def subject(model: str, folder: Path | None, device: str, dtype: str, heads: Heads = ()) -> Subject:
    """A subject by the name of an architecture, or by the folder of a model and its heads. Raises `BenchmarkError`.

    `folder`: where the architecture is written. Without one it is the same in every run: vLLM's compile cache goes by
    the path of a model, among others.
    """
    if model in ARCHITECTURES:
        known = ARCHITECTURES[model]
        folder = folder or Path(tempfile.gettempdir()) / f"surtitle-architectures-{getpass.getuser()}"
        return Subject(known.write(folder / model), heads or known.heads, device, dtype, model)
    path = Path(model)
    if not (path / "config.json").is_file():
        names = ", ".join(ARCHITECTURES)
        raise BenchmarkError(f"'{model}' is neither a folder with a model nor one of {names}.")
    if not heads:
        raise BenchmarkError("A model with weights needs --heads, for example --heads 11.3,6.5.")
    return Subject(path, heads, device, dtype)


def environment(device: str) -> dict[str, Any]:
    """Versions and device, for the artefact."""
    import torch
    import transformers

    found = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "device": torch.cuda.get_device_name() if device == "cuda" else f"CPU ({platform.machine()})",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    try:
        from vllm.version import __version__ as vllm_version

        found["vllm"] = vllm_version
    except ImportError:
        found["vllm"] = "absent"
    if device == "cuda":
        import triton

        found["triton"], found["cuda"] = triton.__version__, torch.version.cuda
        found["gpus"] = torch.cuda.device_count()
    return found


def bandwidth(device: str) -> float:
    """Bytes per second of a large copy on the device, read plus written; 0 on the CPU."""
    if device != "cuda":
        return 0.0
    import torch

    source = torch.empty(1 << 31, dtype=torch.int8, device="cuda").random_(0, 100)
    target = torch.empty_like(source)
    times = []
    for _ in range(12):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        target.copy_(source)
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return 2 * source.numel() / sorted(times)[len(times) // 2]
