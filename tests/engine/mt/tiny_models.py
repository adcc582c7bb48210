"""Checkpoints with random weights of every supported architecture, small enough to run in milliseconds.

Windows are much shorter than any prompt, query heads share key heads, and the scale is no function of the width.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from engine.mt.examples import EXAMPLES

WINDOW = 16
LAYERS = 4
HEADS = 4
SPECIALS = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<end_of_turn>", "<|im_start|>", "<|im_end|>"]
SLIDING, FULL = "sliding_attention", "full_attention"

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA = (
    "<bos>{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    "<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content }}<end_of_turn>\n{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)


# ------------------------------------------------------------ tokenisers


def _trained(tokeniser: Tokenizer, alphabet: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Vocabulary (without special tokens) and merges of a byte-pair model learnt from the worked examples."""
    trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet, show_progress=False)
    tokeniser.train_from_iterator([line for lines in EXAMPLES.values() for line in lines] * 3, trainer)
    model = json.loads(tokeniser.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def byte_level() -> Tokenizer:
    """As in Qwen and Llama 3."""
    start = Tokenizer(models.BPE())
    start.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words, merges = _trained(start, pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: index for index, token in enumerate([*SPECIALS, *words])}
    tokeniser = Tokenizer(models.BPE(vocabulary, merges))
    tokeniser.normalizer = normalizers.NFC()
    tokeniser.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokeniser.decoder = decoders.ByteLevel()
    return tokeniser


def _sentencepiece(start: Tokenizer) -> Tokenizer:
    words, merges = _trained(start, [])
    spelled_bytes = [f"<0x{byte:02X}>" for byte in range(256)]
    vocabulary = {token: index for index, token in enumerate([*SPECIALS, *spelled_bytes, *words])}
    tokeniser = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokeniser.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tokeniser


def gemma_like() -> Tokenizer:
    """Spaces written as ▁, unknown characters as bytes, nothing put in front."""
    start = Tokenizer(models.BPE())
    start.normalizer = normalizers.Replace(" ", "▁")
    start.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    tokeniser = _sentencepiece(start)
    tokeniser.normalizer = normalizers.Replace(" ", "▁")
    return tokeniser


def llama_like() -> Tokenizer:
    """As in Llama 2: a space is put in front of every text."""
    start = Tokenizer(models.BPE())
    start.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokeniser = _sentencepiece(start)
    tokeniser.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    return tokeniser


TOKENISERS: dict[str, Callable[[], Tokenizer]] = {
    "byte_level": byte_level,
    "gemma_like": gemma_like,
    "llama_like": llama_like,
}


def wrapped(kind: str, chat_template: str | None = None) -> Any:
    """A tokeniser of transformers, with the special tokens known as such."""
    tokeniser = TOKENISERS[kind]()
    tokeniser.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokeniser, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>", unk_token="<unk>"
    )
    fast.chat_template = chat_template
    return fast


# ------------------------------------------------------------ models

_COMMON: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
    "max_position_embeddings": 4096,
    "initializer_range": 0.2,
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
_MIXED = [SLIDING, SLIDING, FULL, SLIDING]


def _gemma3(vocabulary: int) -> Any:
    return transformers.Gemma3TextConfig(
        **_COMMON,
        vocab_size=vocabulary,
        head_dim=8,
        query_pre_attn_scalar=24,
        sliding_window=WINDOW,
        layer_types=_MIXED,
    )


def _gemma4(vocabulary: int) -> Any:
    return transformers.Gemma4TextConfig(
        **{**_COMMON, "num_hidden_layers": 6},
        vocab_size=vocabulary,
        vocab_size_per_layer_input=vocabulary,
        hidden_size_per_layer_input=4,
        head_dim=8,
        global_head_dim=16,
        num_kv_shared_layers=2,
        sliding_window=WINDOW,
        layer_types=[SLIDING, FULL, SLIDING, FULL, SLIDING, FULL],
    )


def _gemma3_wrapper(vocabulary: int) -> Any:
    vision = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return transformers.Gemma3Config(
        text_config=_gemma3(vocabulary),
        vision_config={**vision, "image_size": 28, "patch_size": 14},
        image_token_index=4,
        boi_token_index=5,
        eoi_token_index=6,
        mm_tokens_per_image=4,
    )


def _gemma4_wrapper(vocabulary: int) -> Any:
    config = transformers.Gemma4Config(text_config=_gemma4(vocabulary), image_token_id=4, boi_token_id=5)
    config.vision_config = config.audio_config = None
    return config


def _qwen(kind: Any, vocabulary: int, **more: Any) -> Any:
    sliding = {"use_sliding_window": True, "sliding_window": WINDOW, "layer_types": _MIXED}
    return kind(**_COMMON, vocab_size=vocabulary, **sliding, **more)


# architecture: (model class, config for a vocabulary, tokeniser, chat template)
ARCHITECTURES: dict[str, tuple[str, Callable[[int], Any], str, str]] = {
    "gemma3": ("Gemma3ForCausalLM", _gemma3, "gemma_like", GEMMA),
    "gemma3-multimodal": ("Gemma3ForConditionalGeneration", _gemma3_wrapper, "gemma_like", GEMMA),
    "gemma4": ("Gemma4ForCausalLM", _gemma4, "gemma_like", GEMMA),
    "gemma4-multimodal": ("Gemma4ForConditionalGeneration", _gemma4_wrapper, "gemma_like", GEMMA),
    "qwen2": ("Qwen2ForCausalLM", lambda v: _qwen(transformers.Qwen2Config, v), "byte_level", CHATML),
    "qwen3": ("Qwen3ForCausalLM", lambda v: _qwen(transformers.Qwen3Config, v, head_dim=12), "byte_level", CHATML),
    "llama": ("LlamaForCausalLM", lambda v: transformers.LlamaConfig(**_COMMON, vocab_size=v), "llama_like", CHATML),
}


def save(architecture: str, folder: Path) -> Path:
    """Write a checkpoint as the hub has them: config, safetensors, tokeniser."""
    class_name, make_config, tokeniser_kind, template = ARCHITECTURES[architecture]
    tokeniser = wrapped(tokeniser_kind, template)
    torch.manual_seed(7)
    model = getattr(transformers, class_name)(make_config(len(tokeniser)))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:  # fresh norms do nothing, and nobody would notice if they were left out
                weight += 0.2 * torch.randn_like(weight)
    model.save_pretrained(folder)
    tokeniser.save_pretrained(folder)
    return folder
