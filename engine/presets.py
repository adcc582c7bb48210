"""Presets: one TOML file each under `resources/presets`, validated here. Both processes read them from here."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from engine.alignatt.policy import Policy

LANGUAGE_NAMES = {
    "cs": "Czech",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "zh": "Chinese",
}


Part = Literal["recogniser", "translator"]

# GPU memory that a process takes before it has a model: CUDA context, kernels of the libraries.
CONTEXT_GIB = 0.6


class PresetError(Exception):
    """A preset or a language pair that cannot be used; the message is one sentence."""


def resources() -> Path:
    """The folder of shipped data: beside the packages in a checkout, inside `engine` in an installed wheel."""
    here = Path(__file__).resolve().parent
    installed = here / "resources"
    return installed if installed.is_dir() else here.parent / "resources"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecogniserPreset(_Strict):
    """Which recogniser, and its streaming values. `chunk_ms`: new audio between two decodes.

    The last three are of the kind `qwen`: the model that gives words their times, whether the language is found by the
    recogniser instead of taken from the pair, and whether vLLM runs it without compiling.
    """

    kind: Literal["whisper", "qwen"]
    model: str
    chunk_ms: int = Field(ge=100, le=5000)
    hold_back_ms: int = Field(default=300, ge=0, le=2000)
    silence_ms: int = Field(default=700, ge=200, le=5000)
    max_tail_s: float = Field(default=12.0, gt=1, le=28)
    threads: int = Field(default=1, ge=1, le=64)
    aligner: str = ""
    detect_language: bool = False
    asr_vllm_enforce_eager: bool = False


class TranslatorPreset(_Strict):
    """Which translator and how it runs. `seam` is the way rows are captured; names of the published system are kept.

    `adapter`: a name in `resources/adapters` or a folder; the prompt is then the adapter's. `output_tokens` "latin"
    leaves out tokens of other scripts, between languages that need none: of the Hugging Face seams on the CPU, and of
    llama.cpp with packaged weights, whose file is prepared for it once, the adapter merged. `quantise` is of the
    Hugging Face seams on the CPU.
    The last three are of the kind `remote`: the server's address, a file that holds its token, and the preset that the
    server must be running (empty: any).
    """

    kind: Literal["llamacpp", "huggingface", "vllm", "remote"]
    model: str
    seam: Literal["cb_eval", "hf_eager", "hf_qk_fast", "vllm_tap", "remote"]
    heads: str
    prompt: Literal["few_shot", "chat", "talks"] = "chat"
    adapter: str = ""
    threads: int = Field(default=1, ge=1, le=64)
    device: str = Field(default="auto", pattern=r"^(auto|cpu|cuda(:\d+)?)$")  # this and dtype: of the huggingface seams
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    quantise: Literal["none", "int8"] = "none"
    output_tokens: Literal["all", "latin"] = "all"
    context_tokens: int = Field(default=1024, ge=256, le=131072)
    max_history_utterances: int = Field(default=0, ge=0, le=16)
    mt_vllm_enforce_eager: bool = False
    mt_vllm_cudagraph_mode: Literal["FULL_AND_PIECEWISE", "PIECEWISE", "FULL", "NONE"] = "FULL_AND_PIECEWISE"
    mt_vllm_quantization: Literal["none", "fp8_per_channel"] = "none"
    url: str = Field(default="ws://127.0.0.1:8765", pattern=r"^wss?://\S+$")
    token_file: str = ""
    remote_preset: str = ""


class MemoryPreset(_Strict):
    """GPU memory of each engine, in GiB; 0 on the CPU, and to leave the share to vLLM. The first two are of the kind
    `qwen`: the recogniser and its aligner."""

    asr: float = Field(default=0.0, ge=0)
    aligner: float = Field(default=0.0, ge=0)
    mt: float = Field(default=0.0, ge=0)

    @model_validator(mode="after")
    def _both(self) -> Self:
        if bool(self.asr) != bool(self.aligner):
            raise PydanticCustomError("split", "asr and aligner are given together")
        return self


class NeedsPreset(_Strict):
    """What the preset asks of a machine. `licences`: those that a person has to accept."""

    gpu_gib: float = Field(default=0.0, ge=0)
    ram_gib: float = Field(default=0.0, ge=0)
    disk_gib: float = Field(default=0.0, ge=0)
    licences: tuple[str, ...] = ()


class Preset(_Strict):
    """One validated preset. `pairs` are (source, target) language codes.

    `memory_gib`: all that an engine takes on a GPU but its CUDA context. `kv_cache_gib`: of that, keys and values.
    """

    id: str
    title: str
    description: str
    quality: str = ""
    pairs: tuple[tuple[str, str], ...]
    recogniser: RecogniserPreset
    translator: TranslatorPreset
    policy: Policy = Policy()
    memory_gib: MemoryPreset = MemoryPreset()
    kv_cache_gib: MemoryPreset = MemoryPreset()
    needs: NeedsPreset = NeedsPreset()

    @property
    def models(self) -> tuple[str, ...]:
        """The models that run on this machine."""
        own = (self.recogniser.model, self.recogniser.aligner)
        return tuple(filter(None, own if self.translator.kind == "remote" else (*own, self.translator.model)))

    @property
    def uses_vllm(self) -> bool:
        """Whether any of its engines is vLLM's."""
        return self.part_uses_vllm("recogniser") or self.part_uses_vllm("translator")

    @property
    def gpu_gib(self) -> float:
        """Free GPU memory that the whole preset needs, in GiB; 0 when it needs no GPU."""
        split = self.memory_gib
        return max(self.needs.gpu_gib, _with_contexts(split.asr, split.aligner, split.mt))

    def part_uses_vllm(self, part: Part) -> bool:
        """Whether the recogniser or the translator is vLLM's."""
        return self.recogniser.kind == "qwen" if part == "recogniser" else self.translator.kind == "vllm"

    def part_gpu_gib(self, part: Part) -> float:
        """Free GPU memory that the recogniser with its aligner, or the translator needs, in GiB."""
        split = self.memory_gib
        return _with_contexts(split.asr, split.aligner) if part == "recogniser" else _with_contexts(split.mt)

    def check_pair(self, source: str, target: str) -> None:
        """Raises `PresetError` when the preset does not translate this pair."""
        if (source, target) not in self.pairs:
            offered = ", ".join(f"{a}-{b}" for a, b in self.pairs)
            raise PresetError(f"Preset '{self.id}' does not translate {source}-{target}; it offers {offered}.")


def _with_contexts(*engines_gib: float) -> float:
    taken = [gib for gib in engines_gib if gib]
    return sum(taken) + CONTEXT_GIB * len(taken)


def preset_ids() -> list[str]:
    """Ids of the shipped presets: for the CPU, then `remote`, then for a GPU, those of low latency first."""
    return sorted(_files(), key=_place)


def _files() -> list[str]:
    return sorted(path.stem for path in (resources() / "presets").glob("*.toml"))


def _place(preset_id: str) -> tuple[bool, bool, bool, int, float, str]:
    try:
        preset = load_preset(preset_id)
    except PresetError:
        return True, True, True, 0, 0.0, preset_id  # last: whoever chooses it is told
    remote, chunk_ms = preset.translator.kind == "remote", preset.recogniser.chunk_ms
    return False, bool(preset.gpu_gib), remote, chunk_ms, preset.gpu_gib, preset_id


def load_preset(preset_id: str, overrides: dict[str, Any] | None = None) -> Preset:
    """Read and validate a preset; `overrides` are dotted keys such as "policy.theta". Raises `PresetError`."""
    path = resources() / "presets" / f"{preset_id}.toml"
    if preset_id not in _files():
        raise PresetError(f"There is no preset '{preset_id}'; presets are: {', '.join(preset_ids())}.")
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PresetError(f"Preset file {path} cannot be read: {error}.") from error
    for key, value in (overrides or {}).items():
        _override(data, key, value)
    try:
        preset = Preset.model_validate({"id": preset_id, **data})
    except ValidationError as error:
        raise PresetError(_complaint(preset_id, error)) from error
    if preset.id != preset_id:
        raise PresetError(f"Preset '{preset_id}' is not valid at 'id': '{preset.id}' is not the name of its file.")
    return preset


def _complaint(preset_id: str, error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "extra_forbidden" | "unexpected_keyword_argument":
            return f"'{where}' is not a preset key."
        case "model_type" | "dataclass_type":
            return f"'{where}' of preset '{preset_id}' is a group of keys: name one of them, as in {where}.KEY=VALUE."
    return f"Preset '{preset_id}' is not valid at '{where}': {first['msg']}."


def _override(data: dict[str, Any], dotted: str, value: Any) -> None:
    *path, last = dotted.split(".")
    node = data
    for part in path:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise PresetError(f"'{dotted}' is not a preset key.")
    node[last] = value
