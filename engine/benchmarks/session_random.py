"""A session on random weights at full size: what is real in it, and what takes the place of words.

Both speech models and the translator run on every request and are waited for, as in use; so memory, start-up and
latency are real. What random weights write is thrown away. Words come from a made-up speech on the session clock (see
`asr_subject.Speech`); the translator's tokens stay, but a draft ends where a translation of its source would, and where
its tokens looked is made up too: each at the source word that its place corresponds to. So drafts, decisions, releases
and finals come as often as when somebody speaks at a steady pace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from engine.alignatt.draft import Draft
from engine.asr.contract import Recogniser
from engine.benchmarks import speech_checkpoints, text_checkpoints
from engine.benchmarks.architectures import ARCHITECTURES, LOAD_FORMAT
from engine.benchmarks.mt_subject import BenchmarkError
from engine.benchmarks.speech_checkpoints import ALIGNERS, sentence
from engine.mt.contract import Cancel, Source, Translator
from engine.presets import Preset

Progress = Callable[[float, str], None]
MADE_UP = {
    "what": "models, memory, start-up, number and cost of requests are real; words, what target tokens look at, and so "
    "how soon text is stable, are made up",
    "words": "2.5 a second on the session clock, a full stop behind every fourteenth",
    "attention": "rows are captured and waited for; each target token then looks at the source word of its share",
    "drafts": "end where a translation of 1.4 tokens a word would",
}
TOKENS_PER_WORD = 1.4  # of a translation, for each word of its source
ON_SOURCE, ON_PROMPT, ON_TARGET = 0.6, 0.3, 0.1  # masses of a made-up row
CPU_POOL_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class StandIns:
    """What a preset's models are replaced with: names by part, and the overrides that put them into the preset."""

    names: dict[str, str]
    overrides: dict[str, Any]


def stand_ins(preset: Preset, pair: tuple[str, str], folder: Path, on_gpu: bool) -> StandIns:
    """Write the folders of a preset's models without their weights. Raises `BenchmarkError`.

    Without a GPU the models run in float32, uncompiled and with small pools: for trying the benchmark itself.
    """
    if preset.recogniser.kind != "qwen" or preset.translator.kind != "vllm":
        raise BenchmarkError(
            f"Random weights take the place of Qwen3-ASR and of a translator in vLLM; preset '{preset.id}' runs "
            f"{preset.recogniser.kind} and {preset.translator.kind}."
        )
    if find_spec("vllm") is None:
        raise BenchmarkError("vLLM is not installed here: random weights need it, `surtitle setup --gpu` installs it.")
    speech = _known(preset.recogniser.model, ALIGNERS)
    text = _known(preset.translator.model, ARCHITECTURES)
    overrides: dict[str, Any] = {
        "recogniser.model": str(speech_checkpoints.write(speech, folder / speech)),
        "recogniser.aligner": str(speech_checkpoints.write(ALIGNERS[speech], folder / ALIGNERS[speech])),
        "translator.model": str(text_checkpoints.write(text, folder / text)),
        "translator.heads": str(text_checkpoints.write_heads(text, "-".join(pair), "own", folder / "heads")),
    }
    if not on_gpu:
        overrides |= {
            "translator.dtype": "float32", "translator.mt_vllm_enforce_eager": True,
            "recogniser.asr_vllm_enforce_eager": True, "memory_gib": {}, "kv_cache_gib": {}, "needs.gpu_gib": 0.0,
        }  # fmt: skip
    names = {"recogniser": speech, "aligner": ALIGNERS[speech], "translator": text}
    return StandIns(names, overrides)


def _known(model: str, names: Mapping[str, Any]) -> str:
    """The longest known name that a model's own begins with, hyphens and letter case aside."""
    bare = _bare(model.rstrip("/").rsplit("/", 1)[-1])
    fitting = [name for name in names if bare.startswith(_bare(name))]
    if not fitting:
        raise BenchmarkError(f"The dimensions of '{model}' are not known here; known are {', '.join(names)}.")
    return max(fitting, key=len)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


@dataclass(frozen=True, slots=True)
class RandomModels:
    """Opens models with random weights in the engine process. `device`: "cuda" or "cpu"; `speech`, `text`: further
    arguments of vLLM for the speech models and the translator."""

    device: str
    speech: Mapping[str, Any] = field(default_factory=dict)
    text: Mapping[str, Any] = field(default_factory=dict)

    def recogniser(self, preset: Preset, language: str, progress: Progress, context: str) -> Recogniser:
        """The preset's recogniser, which hears the made-up speech. Raises `ModelError`."""
        from engine.asr.factory import LoadedRecogniser, load_qwen
        from engine.asr.qwen import QwenDecoder
        from engine.benchmarks.asr_subject import TOKENS_PER_WORD, WORDS_PER_S, Speech

        vllm = {"load_format": "dummy", **self._small(), **self.speech}
        models = load_qwen(preset, language, progress, vllm)
        speech = Speech(models, sentence(997, 2))
        decoder = QwenDecoder(speech, language, context, forced_tokens_per_s=WORDS_PER_S * TOKENS_PER_WORD)  # type: ignore[arg-type]
        speech.stream = LoadedRecogniser(preset.recogniser, lambda context: decoder, models.close).only(context)
        return speech.stream

    def translator(self, preset: Preset, source_lang: str, target_lang: str, progress: Progress) -> Translator:
        """The preset's translator, which keeps to a translation's length. Raises `TranslationError`."""
        from engine.mt.factory import create_translator

        worker = f"engine.benchmarks.random_{self.device}.Captured"
        vllm = {"load_format": LOAD_FORMAT, "worker_cls": worker, **self._small(), **self.text}
        inner = create_translator(preset, source_lang, target_lang, progress, vllm=vllm)
        return cast(Translator, Measured(inner))

    def _small(self) -> dict[str, Any]:
        return {"kv_cache_memory_bytes": CPU_POOL_BYTES} if self.device == "cpu" else {}


class Measured:
    """A translator whose drafts end where a translation would, and look where it would."""

    def __init__(self, inner: Translator) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        """See `Translator.draft`."""
        whole = round(TOKENS_PER_WORD * len(source.units)) + 1
        left = max(1, whole - len(prefill_ids))
        draft = self._inner.draft(session_id, source, prefill_ids, min(max_new_tokens, left), cancel)
        if draft.finish == "cancelled":
            return draft
        ended = len(draft.token_ids) >= left
        tokens, units = len(draft.token_ids), len(source.units)
        places = (len(prefill_ids) + np.arange(tokens)) / TOKENS_PER_WORD
        rows = np.zeros((tokens, units), np.float32)
        rows[np.arange(tokens), np.minimum(places.astype(int), units - 1)] = ON_SOURCE
        return replace(
            draft,
            rows=rows,
            prompt=np.full(tokens, ON_PROMPT, np.float32),
            suffix=np.full(tokens, ON_TARGET, np.float32),
            finish="stop" if ended else draft.finish,
        )
