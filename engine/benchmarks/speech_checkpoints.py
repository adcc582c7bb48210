"""Model folders of Qwen3-ASR and its aligner with everything but weights, where the real ones cannot be had.

Dimensions and token numbers are those of the published configurations, as far as public notes tell them. The
vocabulary is made up: syllables that join into words, so that any token but the marks reads as a word or part of one,
and a word costs about as many tokens as an English one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

SYLLABLES = [consonant + vowel for consonant, vowel in product("bcdfghjklmnprstvwxyz", "aeiou")]
# In the order of their numbers, which begin behind the vocabulary proper.
MARKS = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>",
    *(f"<|unused_{number}|>" for number in range(23)),
    "<|audio_start|>", "<|audio_end|>",
    *(f"<|unused_{number}|>" for number in range(23, 28)),
    "<|audio_pad|>",
    *(f"<|unused_{number}|>" for number in range(28, 55)),
    "<asr_text>", "<timestamp>",
]  # fmt: skip
SEGMENT_MS = 80


@dataclass(frozen=True, slots=True)
class SpeechShape:
    """Dimensions of one model. `words`: tokens of the vocabulary without marks. `classes`: of an aligner, else 0."""

    layers: int
    hidden: int
    inner: int
    heads: int
    key_heads: int
    head_width: int
    encoder_layers: int
    encoder_width: int
    encoder_heads: int
    encoder_inner: int
    words: int = 151_643
    rows: int = 151_936
    classes: int = 0
    convolution: int = 480
    tied: bool = True

    def number(self, mark: str) -> int:
        """The token number of a mark."""
        return self.words + MARKS.index(mark)


# The smallest recogniser and aligner: half a second to build, milliseconds to run.
_TINY: dict[str, Any] = {
    "layers": 2, "hidden": 64, "inner": 96, "heads": 4, "key_heads": 2, "head_width": 32,
    "encoder_layers": 2, "encoder_width": 64, "encoder_heads": 4, "encoder_inner": 96,
    "words": 800, "rows": 864, "convolution": 32,
}  # fmt: skip
SHAPES = {
    "qwen3-asr-1.7b": SpeechShape(28, 2048, 6144, 16, 8, 128, 24, 1024, 16, 4096),
    "qwen3-asr-0.6b": SpeechShape(28, 1024, 3072, 16, 8, 128, 18, 896, 14, 3584),
    "qwen3-forced-aligner-0.6b": SpeechShape(28, 1024, 3072, 16, 8, 128, 24, 1024, 16, 4096, classes=5000),
    "qwen3-asr-tiny": SpeechShape(**_TINY),
    "qwen3-forced-aligner-tiny": SpeechShape(**_TINY, classes=500),
}
ALIGNERS = {
    "qwen3-asr-1.7b": "qwen3-forced-aligner-0.6b",
    "qwen3-asr-0.6b": "qwen3-forced-aligner-0.6b",
    "qwen3-asr-tiny": "qwen3-forced-aligner-tiny",
}


def config(shape: SpeechShape) -> dict[str, Any]:
    """The configuration in the form that the models are published in."""
    text = {
        "model_type": "qwen3_asr_text",
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_width,
        "vocab_size": shape.rows,
        "max_position_embeddings": 65_536,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "rope_scaling": {
            "rope_type": "default", "mrope_section": _sections(shape.head_width // 2), "mrope_interleaved": True,
        },
        "hidden_act": "silu",
        "attention_bias": False,
        "tie_word_embeddings": shape.tied,
    }  # fmt: skip
    audio = {
        "model_type": "qwen3_asr_audio_encoder",
        "num_mel_bins": 128,
        "encoder_layers": shape.encoder_layers,
        "encoder_attention_heads": shape.encoder_heads,
        "encoder_ffn_dim": shape.encoder_inner,
        "d_model": shape.encoder_width,
        "output_dim": shape.hidden,
        "activation_function": "gelu",
        "max_source_positions": 1500,
        "n_window": 50,
        "n_window_infer": 800,
        "conv_chunksize": 500,
        "downsample_hidden_size": shape.convolution,
    }
    thinker: dict[str, Any] = {
        "model_type": "qwen3_asr",
        "dtype": "bfloat16",
        "audio_config": audio,
        "text_config": text,
        "audio_start_token_id": shape.number("<|audio_start|>"),
        "audio_end_token_id": shape.number("<|audio_end|>"),
        "audio_token_id": shape.number("<|audio_pad|>"),
    }
    whole: dict[str, Any] = {
        "architectures": ["Qwen3ASRForConditionalGeneration"],
        "model_type": "qwen3_asr",
        "dtype": "bfloat16",
        "thinker_config": thinker,
        "support_languages": ["English", "German", "Chinese"],
    }
    if shape.classes:
        thinker["classify_num"] = shape.classes
        whole["timestamp_token_id"] = shape.number("<timestamp>")
        whole["timestamp_segment_time"] = SEGMENT_MS
    return whole


def write(name: str, folder: Path) -> Path:
    """The folder of a named model: configuration, tokeniser and audio front end, no weights."""
    shape = SHAPES[name]
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary, merges = vocabulary_of(shape.words)
    marks = {
        str(shape.words + at): {
            "content": mark, "special": mark.startswith("<|"), "normalized": False,
            "lstrip": False, "rstrip": False, "single_word": False,
        }
        for at, mark in enumerate(MARKS)
    }  # fmt: skip
    files: dict[str, Any] = {
        "config.json": config(shape),
        "generation_config.json": {"eos_token_id": [shape.number("<|im_end|>"), shape.number("<|endoftext|>")]},
        "preprocessor_config.json": {
            "feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "Qwen3ASRProcessor",
            "feature_size": 128, "sampling_rate": 16_000, "hop_length": 160, "n_fft": 400, "chunk_length": 30,
            "n_samples": 480_000, "nb_max_frames": 3000, "padding_side": "right", "padding_value": 0.0,
            "dither": 0.0, "return_attention_mask": True,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer", "processor_class": "Qwen3ASRProcessor",
            "added_tokens_decoder": marks, "add_prefix_space": False, "bos_token": None, "unk_token": None,
            "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "model_max_length": 131_072,
            "extra_special_tokens": {
                "audio_bos_token": "<|audio_start|>", "audio_eos_token": "<|audio_end|>",
                "audio_token": "<|audio_pad|>",
            },
        },
        "vocab.json": vocabulary,
    }  # fmt: skip
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(f"{a} {b}" for a, b in merges) + "\n", encoding="utf-8")
    return folder


def vocabulary_of(size: int) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """So many tokens with their numbers, and the merges that lead to them: bytes, syllables, words of two and three
    syllables behind a space, and pairs of syllables inside a word."""
    merges: list[tuple[str, str]] = [(one[0], one[1]) for one in SYLLABLES]
    merges += [("Ġ", one) for one in SYLLABLES]
    merges += [(f"Ġ{one}", other) for one, other in product(SYLLABLES, SYLLABLES)]
    merges += list(product(SYLLABLES, SYLLABLES))
    room = size - 256 - len(merges)
    merges = merges[: size - 256]
    if room > 0:
        # spread evenly over the first two syllables
        merges += islice(
            ((f"Ġ{one}{other}", last) for last, one, other in product(SYLLABLES, SYLLABLES, SYLLABLES)), room
        )
    tokens = [*_byte_characters(), *(a + b for a, b in merges)]
    return {token: number for number, token in enumerate(tokens)}, merges


def sentence(count: int, seed: int, marks: bool = True) -> list[str]:
    """So many made-up words of one to three syllables, with a full stop behind every fourteenth or so."""
    import numpy as np

    rng = np.random.default_rng(seed)
    words = ["".join(SYLLABLES[at] for at in rng.integers(0, 100, rng.integers(1, 4))) for _ in range(count)]
    for at in range(13, count, 14) if marks else ():
        words[at] += "."
    return words


def _sections(half: int) -> Sequence[int]:
    """How rotary frequencies are shared among time, height and width; audio has the same position in all three."""
    side = half * 20 // 64
    return [half - 2 * side, side, side]


def _byte_characters() -> list[str]:
    """The character that stands for each byte in a byte-level vocabulary (as in GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(byte if byte in plain else next(other)) for byte in range(256)]
