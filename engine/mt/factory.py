"""From a preset to a translator that is ready: weights found, heads chosen, the languages' fixed prompt computed."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from engine import fitting
from engine.alignatt.heads import HeadSet, load_head_set
from engine.models import cache_folder, checksum, resolve
from engine.models import check as check_model
from engine.mt.adapter import GGUF, SAFETENSORS, Adapter, load_adapter
from engine.mt.contract import Progress, TranslationError, Translator
from engine.packaged import PACKAGED
from engine.presets import Preset, resources

logger = logging.getLogger("surtitle.mt")

# Shares of the progress bar: weights may have to be put together, the rest takes under a second.
_WEIGHTS, _LOADED = 0.6, 0.9

# vLLM's own choice follows the device, and what a step takes of its memory follows this.
VLLM_BATCH_TOKENS = 4096

_LATIN_SCRIPT = {"cs", "de", "en", "es", "fr", "it"}

_EXTRAS = {"huggingface": "torch", "vllm": "gpu"}
_MODULES = {"llamacpp": "engine.mt.llamacpp", "huggingface": "engine.mt.huggingface"}
_FAST_ON_TORCH = {"quantise": "int8", "output_tokens": "latin"}


@dataclass(frozen=True, slots=True)
class Order:
    """What a translator is made from. `progress` covers loading alone. `sessions`: drafts in one batch of vLLM,
    `vllm`: further arguments of it.
    """

    preset: Preset
    path: Path
    head_set: HeadSet
    source_lang: str
    target_lang: str
    progress: Progress
    adapter: Adapter | None = None
    sessions: int = 8
    vllm: Mapping[str, Any] | None = None

    @property
    def prompt(self) -> str:
        """The prompt layout: an adapter knows only the one that it was trained with."""
        return self.adapter.prompt if self.adapter else self.preset.translator.prompt

    @property
    def latin(self) -> bool:
        """Whether tokens of other scripts may be left out."""
        both = {self.source_lang, self.target_lang}
        return self.preset.translator.output_tokens == "latin" and both <= _LATIN_SCRIPT

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """The (layer, head)s that the policy reads."""
        return tuple((head.layer, head.head) for head in self.head_set.top(self.preset.policy.top_k))

    @property
    def head_set_name(self) -> str:
        """The head set, as logs name it."""
        return f"{self.preset.translator.heads}/{self.head_set.direction}"


class _Local(Translator, Protocol):
    """What is asked of a translator on this machine before it is used."""

    @property
    def geometry(self) -> tuple[int, int]: ...

    @property
    def architecture(self) -> str: ...

    @property
    def layout_id(self) -> str: ...

    def warm_up(self, source_lang: str, target_lang: str) -> None: ...


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is known of a translator before its weights are touched. `stand_in`, `heads_note`: see `CaptureHealth`."""

    preset: Preset
    opener: Callable[[Order], Translator]
    adapter: Adapter | None
    head_set: HeadSet
    stand_in: str
    heads_note: str


def check_translator(preset: Preset, source_lang: str, target_lang: str) -> None:
    """See what can be seen without loading a model: library, adapter, head set, and that there are weights.

    Raises what `create_translator` would.
    """
    wanted = _plan(preset, source_lang, target_lang).preset.translator
    path = check_model(wanted.model, wanted.kind)
    if path is not None and wanted.kind == "llamacpp":
        from engine.mt.llama_context import check_file

        check_file(path)
    elif path is not None and path.suffix.lower() != ".gguf" and not (path / "config.json").is_file():
        raise TranslationError(f"{path} holds no model: there is no config.json in it and it is no GGUF file.")


def create_translator(
    preset: Preset,
    source_lang: str,
    target_lang: str,
    progress: Progress,
    *,
    sessions: int = 8,
    vllm: Mapping[str, Any] | None = None,
) -> Translator:
    """The translator of a preset, warm for a language pair. `progress` is told fractions in [0, 1] and what happens.

    `sessions`: how many drafts may run at once, where the translator can (vLLM); `vllm`: further arguments of vLLM.

    Where the model's shared heads stand in for those of the direction, or torch for llama.cpp, that is logged and noted
    in `health`. Raises `TranslationError`, `HeadSetError` or `ModelError`, each with one sentence.
    """
    plan = _plan(preset, source_lang, target_lang)
    wanted, adapter = plan.preset.translator, plan.adapter
    for note in filter(None, (plan.stand_in, plan.heads_note)):
        logger.warning("%s", note)
    fitting.check(plan.preset, "translator")
    path = resolve(wanted.model, lambda fraction, text: progress(_WEIGHTS * fraction, text), wanted.kind)
    if adapter:
        adapter.check_base(path, checksum(wanted.model, path))

    def loading(fraction: float, text: str) -> None:
        progress(_WEIGHTS + (_LOADED - _WEIGHTS) * fraction, text)

    order = Order(plan.preset, path, plan.head_set, source_lang, target_lang, loading, adapter, sessions, vllm)
    translator = plan.opener(order)
    translator.health.stand_in, translator.health.heads_note = plan.stand_in, plan.heads_note
    progress(1.0, f"{wanted.model} is ready")
    return translator


def _plan(preset: Preset, source_lang: str, target_lang: str) -> _Plan:
    preset, stand_in = _runnable(preset)
    wanted = preset.translator
    opener = _OPENERS.get(wanted.kind)
    if opener is None:
        extra = _EXTRAS.get(wanted.kind)
        how = f": it needs pip install 'surtitle[{extra}]'" if extra else ""
        raise TranslationError(f"The {wanted.kind} translator of preset '{preset.id}' is not available here{how}.")
    adapter = load_adapter(wanted.adapter) if wanted.adapter else None
    if adapter:
        adapter.check_pair(source_lang, target_lang)
    head_set, note = load_head_set(resources() / "heads" / wanted.heads, f"{source_lang}-{target_lang}")
    notes = filter(None, (note, head_set.doubt(wanted.model)))
    return _Plan(preset, opener, adapter, head_set, stand_in, " ".join(notes))


def _runnable(preset: Preset) -> tuple[Preset, str]:
    """The preset, or one that runs its model on torch where llama.cpp cannot be loaded, with a sentence that says so.

    Raises `TranslationError` where torch is missing as well.
    """
    if preset.translator.kind != "llamacpp":
        return preset, ""
    missing = why_not("llamacpp")
    if not missing:
        return preset, ""
    if missing_too := why_not("huggingface"):
        raise TranslationError(
            f"llama-cpp-python cannot be loaded ({missing}), nor torch and transformers in its place ({missing_too}): "
            "install a C++ compiler (g++) and run `make demo` again, or pip install 'surtitle[torch]'."
        )
    stand_in = (
        f"llama-cpp-python cannot be loaded ({missing}): the same model runs on torch instead, more slowly; to mend "
        "it, install a C++ compiler (g++) and run `make demo` again."
    )
    instead = {"kind": "huggingface", "seam": "hf_qk_fast", **_FAST_ON_TORCH}
    return preset.model_copy(update={"translator": preset.translator.model_copy(update=instead)}), stand_in


def why_not(kind: str) -> str:
    """Why a kind of local translator cannot be loaded here, "" when it can."""
    try:
        importlib.import_module(_MODULES[kind])
    except (ImportError, OSError, RuntimeError) as error:
        return str(error).rstrip(".")
    return ""


def _open_llamacpp(order: Order) -> Translator:
    wanted = order.preset.translator
    if wanted.seam != "cb_eval":
        raise TranslationError(f"llama.cpp has no seam '{wanted.seam}'; set translator.seam to cb_eval.")
    from engine.mt.llamacpp import LlamaCppTranslator

    path, adapter, load_share = order.path, order.adapter.file(GGUF) if order.adapter else None, 1.0
    if order.latin and wanted.model in PACKAGED:
        path, adapter, load_share = _prepared(order, adapter), None, 0.2
    translator = LlamaCppTranslator(
        path,
        order.prompt,
        order.heads,
        order.head_set.query_row,
        threads=wanted.threads,
        n_ctx=wanted.context_tokens,
        progress=lambda fraction, text: order.progress(1 - load_share + load_share * fraction, text),
        head_set_name=order.head_set_name,
        adapter=adapter,
    )
    return _made_ready(order, translator)


def _prepared(order: Order, adapter: Path | None) -> Path:
    """The packaged file with the adapter merged and without tokens of other scripts; made once, in seconds."""
    try:
        from engine.mt.gguf_prepare import prepare
    except ImportError as error:
        raise TranslationError(
            f"Preparing {order.path.name} needs the package '{error.name}': pip install 'surtitle[laptop]'."
        ) from error
    base_sha256 = checksum(order.preset.translator.model, order.path)
    return prepare(
        order.path, base_sha256, adapter, cache_folder(), lambda fraction, text: order.progress(0.8 * fraction, text)
    )


def _open_huggingface(order: Order) -> Translator:
    wanted = order.preset.translator
    if wanted.seam not in ("hf_eager", "hf_qk_fast"):
        raise TranslationError(
            f"transformers has no seam '{wanted.seam}'; set translator.seam to hf_qk_fast or hf_eager."
        )
    try:
        from engine.mt.huggingface import HuggingFaceTranslator
    except (ImportError, OSError, RuntimeError) as error:
        raise TranslationError(
            f"torch and transformers cannot be loaded ({error}): pip install 'surtitle[torch]'."
        ) from error
    translator = HuggingFaceTranslator(
        order.path,
        order.prompt,
        order.heads,
        order.head_set.query_row,
        seam=wanted.seam,
        cache=cache_folder(),
        dtype=wanted.dtype,
        device=wanted.device,
        threads=wanted.threads,
        n_ctx=wanted.context_tokens,
        progress=order.progress,
        head_set_name=order.head_set_name,
        adapter=(order.adapter.file(SAFETENSORS), order.adapter.scale) if order.adapter else None,
        quantise=wanted.quantise,
        output_tokens="latin" if order.latin else "all",
    )
    return _made_ready(order, translator)


def _open_vllm(order: Order) -> Translator:
    wanted = order.preset.translator
    if wanted.seam != "vllm_tap":
        raise TranslationError(f"vLLM has no seam '{wanted.seam}'; set translator.seam to vllm_tap.")
    if order.adapter:
        raise TranslationError(
            f"The adapter '{order.adapter.name}' works in llama.cpp and transformers, not in vLLM: set "
            "translator.adapter to ''."
        )
    from engine.mt.vllm import VllmTranslator

    translator = VllmTranslator(
        order.path,
        wanted.prompt,
        order.heads,
        order.head_set.query_row,
        cache=cache_folder(),
        n_ctx=wanted.context_tokens,
        dtype=wanted.dtype,
        mt_vllm_enforce_eager=wanted.mt_vllm_enforce_eager,
        mt_vllm_cudagraph_mode=wanted.mt_vllm_cudagraph_mode,
        mt_vllm_quantization=wanted.mt_vllm_quantization,
        memory_gib=order.preset.memory_gib.mt,
        kv_cache_gib=order.preset.kv_cache_gib.mt,
        own_process=True,  # the recogniser's engines, and this process's threads, stay out of its way
        vllm={"max_num_batched_tokens": VLLM_BATCH_TOKENS, **(order.vllm or {})},
        progress=order.progress,
        head_set_name=order.head_set_name,
        sessions=order.sessions,
    )
    return _made_ready(order, translator)


def _made_ready(order: Order, translator: _Local) -> Translator:
    """The translator, once its model fits the head set and its fixed prompt is computed; otherwise it is closed."""
    try:
        name = Path(order.preset.translator.model).name
        order.head_set.check_model(name, *translator.geometry, translator.architecture)
        _compare_layouts(order.head_set, translator.layout_id)
        translator.warm_up(order.source_lang, order.target_lang)
    except BaseException:
        translator.close()
        raise
    return translator


def _compare_layouts(head_set: HeadSet, layout_id: str) -> None:
    if head_set.prompt_layout != layout_id:
        logger.warning(
            "The heads of %s %s were found with the prompt %s, and are used with %s.",
            head_set.model,
            head_set.direction,
            head_set.prompt_layout,
            layout_id,
        )


_OPENERS: dict[str, Callable[[Order], Translator]] = {
    "llamacpp": _open_llamacpp,
    "huggingface": _open_huggingface,
    "vllm": _open_vllm,
}
