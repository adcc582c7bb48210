"""The model that is calibrated, with every head readable: a GGUF file in llama.cpp, a folder in transformers."""

from __future__ import annotations

from pathlib import Path

from engine.calibration.contract import TeacherForced
from engine.models import cache_folder, checksum, resolve
from engine.mt.adapter import GGUF, load_adapter
from engine.mt.contract import TranslationError

CONTEXT_TOKENS = 1024
PROMPT_FOR_PACKAGED = "few_shot"  # the packaged Gemma is a base model


def open_model(
    model: str, source_lang: str, target_lang: str, prompt: str | None, threads: int, adapter: str = ""
) -> TeacherForced:
    """Load a packaged name, a GGUF file or a Hugging Face folder; `adapter` (of a GGUF file) brings its own prompt.

    Raises `ModelError` or `TranslationError`.
    """
    path = resolve(model, kind="llamacpp")
    layout = prompt or (PROMPT_FOR_PACKAGED if not Path(model).exists() else "chat")
    lora: Path | None = None
    if adapter:
        found = load_adapter(adapter)
        found.check_pair(source_lang, target_lang)
        found.check_base(path, checksum(model, path))
        layout, lora = found.prompt, found.file(GGUF)
    if path.is_dir():
        return _open_folder(path, layout, threads)
    from engine.mt.llamacpp import LlamaCppTranslator

    translator = LlamaCppTranslator(
        path, layout, None, "predicting", threads=threads, n_ctx=CONTEXT_TOKENS, adapter=lora
    )
    translator.warm_up(source_lang, target_lang)
    return translator


def _open_folder(path: Path, layout: str, threads: int) -> TeacherForced:
    try:
        from engine.mt.huggingface import HuggingFaceTranslator
    except ImportError as error:
        raise TranslationError(
            f"A Hugging Face folder needs torch and transformers ({error.name} is missing): "
            "pip install 'surtitle[torch]'."
        ) from error
    return HuggingFaceTranslator(
        path, layout, None, "predicting", cache=cache_folder(), threads=threads, n_ctx=CONTEXT_TOKENS
    )
