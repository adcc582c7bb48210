"""Qwen3-ASR and its forced aligner, loaded once for all sessions, each in an engine of its own.

vLLM's classes are used as they are. `Qwen3ASRRealtimeGeneration` is not: it cuts audio into pieces of 5 s that are
transcribed apart from each other, without text so far, context or language, and appends what comes out; a word across
a cut is lost and nothing written can be corrected.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.asr import qwen_text
from engine.asr.contract import SAMPLE_RATE
from engine.asr.speech_engine import AUDIO, RecognitionError, SpeechEngine, SpeechJob, start
from engine.capture.host import Cancel
from engine.capture.settings import EngineSettings

Audio = NDArray[np.float32]
Progress = Callable[[float, str], None]

# Context, audio, text so far and new text of the longest window; and of the aligner's, with two marks a word.
MODEL_TOKENS = 2048
# Of a step: five windows of 30 s. Their first convolution takes 0.2 GiB a window.
BATCH_TOKENS = 2048
# Of the encoder: 13 tokens for each whole second.
AUDIO_TOKENS_PER_S = 13
# The model's own package pads shorter audio.
SHORTEST_S = 0.5
ROLES = ("recogniser", "forced aligner")


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    """How both models run. `memory_gib` and `kv_cache_gib`, of the recogniser and of the aligner: see `EngineSettings`.
    `sessions`: requests in one batch. `vllm`: further arguments of vLLM for both."""

    sessions: int = 8
    dtype: str = "auto"
    enforce_eager: bool = False
    memory_gib: tuple[float, float] = (0.0, 0.0)
    kv_cache_gib: tuple[float, float] = (0.0, 0.0)
    own_process: bool = True
    vllm: Mapping[str, Any] = field(default_factory=dict)

    def engine(self, folder: Path, role: str, eager: bool, more: Mapping[str, Any]) -> EngineSettings:
        """One of the engines, with its part of the memory."""
        part = ROLES.index(role)
        return EngineSettings(
            model=str(folder),
            role=role,
            max_model_len=MODEL_TOKENS,
            max_num_seqs=self.sessions,
            dtype=self.dtype,
            enforce_eager=eager,
            memory_gib=self.memory_gib[part],
            kv_cache_gib=self.kv_cache_gib[part],
            own_process=self.own_process,
            capture=False,
            vllm={
                **AUDIO,
                "max_num_batched_tokens": BATCH_TOKENS,
                "attention_backend": None,
                "hf_overrides": {},
                **more,
                **self.vllm,
            },
        )


class QwenModels:
    """Both models. Any thread may ask. Raises `RecognitionError` for folders that hold no such models."""

    def __init__(
        self, recogniser: Path, aligner: Path, settings: SpeechSettings, progress: Progress | None = None
    ) -> None:
        tell = progress or (lambda fraction, text: None)
        self._text_lock = threading.Lock()  # transformers' fast tokenisers are not safe to share between threads
        self._tokens, self._align_tokens = _tokeniser(recogniser), _tokeniser(aligner)
        self._chat = _chat_of(recogniser, self._tokens)
        self._stop_ids = _ids(self._tokens, qwen_text.END_TOKENS, recogniser)
        self._mark, self.class_s = _marks(aligner, self._align_tokens)
        for folder in (recogniser, aligner) if "load_format" not in settings.vllm else ():
            if not any(folder.glob("*.safetensors")):
                raise RecognitionError(f"{folder} holds no weights: there is no file *.safetensors in it.")
        tell(0.0, f"Starting vLLM with {recogniser.name}")
        self._recogniser = start(settings.engine(recogniser, ROLES[0], settings.enforce_eager, {}))
        try:
            tell(0.6, f"Starting vLLM with {aligner.name}")
            self._aligner = start(settings.engine(aligner, ROLES[1], True, _pooling(self._mark)))
        except BaseException:
            self._recogniser.close()
            raise

    @property
    def engines(self) -> tuple[SpeechEngine, SpeechEngine]:
        """The recogniser's and the aligner's."""
        return self._recogniser, self._aligner

    def transcribe(
        self, audio: Audio, context: str, head: str, most: int, cancel: Cancel | None = None, exactly: bool = False
    ) -> str | None:
        """What the model writes behind `head`, at most `most` tokens; None when cancelled. Raises `RecognitionError`.

        `exactly`: as many tokens as `most`, whatever they are.
        """
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        with self._text_lock:
            ids = self._tokens.encode(self._chat(context) + head, add_special_tokens=False)
        params = SamplingParams(
            temperature=0.0,
            max_tokens=most,
            stop_token_ids=sorted(self._stop_ids),
            ignore_eos=exactly,
            min_tokens=most if exactly else 0,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        job = SpeechJob((), most, self._stop_ids, None, prompt=_with_audio(ids, audio), params=params)
        made = self._recogniser.ask(job, cancel)
        if made.finish == "cancelled":
            return None
        with self._text_lock:
            return str(self._tokens.decode(made.token_ids, skip_special_tokens=False))

    def align(self, audio: Audio, spoken: Sequence[str], cancel: Cancel | None = None) -> list[int] | None:
        """Two classes of `class_s` seconds for each word, as many words as fit; None when cancelled.

        Raises `RecognitionError`.
        """
        from vllm import PoolingParams

        ids = self._align_ids(audio, spoken)
        count = ids.count(self._mark)
        if not count:
            return []
        params = PoolingParams(task="token_classify", use_activation=False)
        job = SpeechJob((), 1, frozenset(), None, prompt=_with_audio(ids, audio), params=params)
        if self._aligner.ask(job, cancel).finish == "cancelled":
            return None
        if job.classes is None or len(job.classes) != count:
            raise RecognitionError(
                f"The aligner gave {0 if job.classes is None else len(job.classes)} of {count} times."
            )
        return [int(value) for value in job.classes]

    def warm_up(self) -> None:
        """One request to each, so that nothing is compiled while somebody speaks."""
        noise = np.random.default_rng(0).normal(0, 0.01, SAMPLE_RATE).astype(np.float32)
        self.transcribe(noise, "", "", 4)
        self.align(noise, ["a"])

    def close(self) -> None:
        """End both engines and their processes. What is being decoded ends with an error."""
        self._recogniser.close()
        self._aligner.close()

    def _align_ids(self, audio: Audio, spoken: Sequence[str]) -> list[int]:
        """The audio, and behind each word a mark for its start and one for its end."""
        room = MODEL_TOKENS - 8 - AUDIO_TOKENS_PER_S * (1 + len(audio) // SAMPLE_RATE)
        with self._text_lock:
            ids: list[int] = self._align_tokens.encode(qwen_text.AUDIO, add_special_tokens=False)
            for word in spoken:
                more = [*self._align_tokens.encode(word, add_special_tokens=False), self._mark, self._mark]
                if len(ids) + len(more) > room:
                    break
                ids += more
        return ids


def _with_audio(ids: Sequence[int], audio: Audio) -> dict[str, Any]:
    missing = round(SHORTEST_S * SAMPLE_RATE) - len(audio)
    return {
        "prompt_token_ids": list(ids),
        "multi_modal_data": {"audio": np.pad(audio, (0, missing)) if missing > 0 else audio},
    }


def _pooling(mark: int) -> dict[str, Any]:
    """vLLM's arguments for the aligner: times at the marks alone leave its process, one prefill gives them all."""
    try:
        from vllm.config import PoolerConfig
    except ImportError as error:
        raise RecognitionError("vLLM is not installed: install surtitle[gpu] on Linux with an NVIDIA GPU.") from error
    return {
        "runner": "pooling",
        "hf_overrides": {"architectures": ["Qwen3ASRForcedAlignerForTokenClassification"]},
        "pooler_config": PoolerConfig(tok_pooling_type="STEP", step_tag_id=mark, use_activation=False),
        "enable_prefix_caching": False,
        "enable_chunked_prefill": False,
        "async_scheduling": False,
    }


def _tokeniser(folder: Path) -> Any:
    if not (folder / "config.json").is_file():
        raise RecognitionError(f"{folder} holds no model: there is no config.json in it.")
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise RecognitionError("vLLM is not installed: install surtitle[gpu] on Linux with an NVIDIA GPU.") from error
    try:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise RecognitionError(f"The tokeniser in {folder} cannot be loaded: {reason}.") from error


def _ids(tokens: Any, names: Sequence[str], folder: Path) -> frozenset[int]:
    vocabulary = tokens.get_vocab()
    missing = [name for name in (*names, qwen_text.AUDIO_PAD, qwen_text.TEXT_TAG) if name not in vocabulary]
    if missing:
        raise RecognitionError(f"{folder} holds no Qwen3-ASR model: its tokeniser has no {missing[0]}.")
    return frozenset(vocabulary[name] for name in names)


def _marks(folder: Path, tokens: Any) -> tuple[int, float]:
    """The id of an aligner's mark, and the length of a class in seconds."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    mark, length_ms = config.get("timestamp_token_id"), config.get("timestamp_segment_time")
    if not isinstance(mark, int) or not isinstance(length_ms, int | float) or length_ms <= 0:
        raise RecognitionError(
            f"{folder} holds no forced aligner: its config.json names no timestamps and their length."
        )
    if tokens.convert_ids_to_tokens(mark) != qwen_text.TIMESTAMP:
        raise RecognitionError(f"{folder} holds no forced aligner: token {mark} is no {qwen_text.TIMESTAMP}.")
    return mark, float(length_ms) / 1000


def _chat_of(folder: Path, tokens: Any) -> Callable[[str], str]:
    """How the turns in front of an answer are written: by the checkpoint's template if it has one."""
    template = tokens.chat_template
    if not template and (folder / "chat_template.json").is_file():
        template = json.loads((folder / "chat_template.json").read_text(encoding="utf-8")).get("chat_template")
    if not template:
        return qwen_text.chat

    def render(context: str) -> str:
        turns = [
            {"role": "system", "content": context},
            {"role": "user", "content": [{"type": "audio", "audio": ""}]},
        ]
        return str(
            tokens.apply_chat_template(turns, chat_template=template, tokenize=False, add_generation_prompt=True)
        )

    if render("terms").count(qwen_text.AUDIO) != 1 or "terms" not in render("terms"):
        raise RecognitionError(f"The chat template in {folder} puts no context and no audio where Qwen3-ASR has them.")
    return render
