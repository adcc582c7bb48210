"""Dimensions of named models, for speed and correctness on machines where their weights cannot be had."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LOAD_FORMAT = "surtitle_random"  # how vLLM is asked for seeded random weights
Heads = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Architecture:
    """A configuration as transformers reads it, and the heads that a benchmark watches."""

    config: dict[str, Any]
    heads: Heads

    def write(self, folder: Path) -> Path:
        """A model folder with a configuration and no weights; several processes may write the same one."""
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"config.{os.getpid()}.part"
        part.write_text(json.dumps(self.config, indent=1), encoding="utf-8")
        part.replace(folder / "config.json")
        return folder


def _common(
    model_type: str, architecture: str, layers: int, hidden: int, inner: int, vocabulary: int
) -> dict[str, Any]:
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "dtype": "bfloat16",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "vocab_size": vocabulary,
        "rms_norm_eps": 1e-6,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "use_cache": True,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 1,
    }


def _gemma4(
    layers: int, shared: int, hidden: int, inner: int, vocabulary: int, heads: int, width: int, window: int
) -> dict[str, Any]:
    kinds = ["full_attention" if layer % 6 == 5 else "sliding_attention" for layer in range(layers)]
    return {
        **_common("gemma4_text", "Gemma4ForCausalLM", layers, hidden, inner, vocabulary),
        "vocab_size_per_layer_input": vocabulary,
        "hidden_size_per_layer_input": 256 if hidden > 1000 else 32,
        "num_attention_heads": heads,
        "num_key_value_heads": 2,
        "head_dim": width,
        "global_head_dim": 2 * width,
        "num_kv_shared_layers": shared,
        "sliding_window": window,
        "layer_types": kinds,
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 131072,
        "final_logit_softcapping": 30.0,
        "tie_word_embeddings": True,
        "attention_k_eq_v": False,
        "use_double_wide_mlp": False,
        "enable_moe_block": False,
        "rope_parameters": {
            "full_attention": {"rope_type": "proportional", "partial_rotary_factor": 0.25, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    }


def _wrapped(text: dict[str, Any]) -> dict[str, Any]:
    """A Gemma 4 text model as the published checkpoints hold it: inside the multimodal class, towers beside it."""
    return {
        "architectures": ["Gemma4ForConditionalGeneration"],
        "model_type": "gemma4",
        "dtype": "bfloat16",
        "text_config": text,
        "vision_config": {"model_type": "gemma4_vision"},
        "audio_config": None,
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 1,
    }


def _gemma3(
    layers: int, hidden: int, inner: int, vocabulary: int, heads: int, kv_heads: int, window: int
) -> dict[str, Any]:
    return {
        **_common("gemma3_text", "Gemma3ForCausalLM", layers, hidden, inner, vocabulary),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": 256,
        "query_pre_attn_scalar": 256,
        "sliding_window": window,
        "layer_types": ["full_attention" if layer % 6 == 5 else "sliding_attention" for layer in range(layers)],
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
    }


def _qwen3(layers: int, hidden: int, inner: int, vocabulary: int, heads: int, width: int) -> dict[str, Any]:
    return {
        **_common("qwen3", "Qwen3ForCausalLM", layers, hidden, inner, vocabulary),
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 2,
        "head_dim": width,
        "hidden_act": "silu",
        "max_position_embeddings": 40960,
        "rope_theta": 1e6,
        "tie_word_embeddings": True,
    }


def _llama(layers: int, hidden: int, inner: int, vocabulary: int, heads: int) -> dict[str, Any]:
    return {
        **_common("llama", "LlamaForCausalLM", layers, hidden, inner, vocabulary),
        "num_attention_heads": heads,
        "num_key_value_heads": heads // 4,
        "head_dim": 64,
        "hidden_act": "silu",
        "max_position_embeddings": 131072,
        "rope_theta": 5e5,
        "tie_word_embeddings": True,
    }


_E4B = _gemma4(42, 18, 2560, 10240, 262144, 8, 256, 512)
_E4B_HEADS: Heads = ((11, 3), (6, 5), (17, 3), (20, 0))  # the four best for English to German
_MEDIUM = _gemma4(12, 5, 1280, 5120, 32768, 8, 256, 512)
_TINY = _gemma4(12, 5, 64, 128, 4096, 4, 32, 32)
_SHARED: Heads = ((5, 3), (3, 0), (9, 2), (11, 1))  # in the last five of twelve layers: keys of another layer

ARCHITECTURES = {
    "gemma-4-e4b": Architecture(_E4B, _E4B_HEADS),
    "gemma-4-e4b-shared": Architecture(_E4B, ((11, 3), (29, 2), (30, 1), (41, 7))),
    "gemma-4-e4b-wrapped": Architecture(_wrapped(_E4B), _E4B_HEADS),
    "gemma-3-4b": Architecture(_gemma3(34, 2560, 10240, 262208, 8, 4, 1024), ((11, 2), (11, 3), (6, 4), (4, 2))),
    # For tensor parallelism: heads of both halves; the second has a single key-value head, which ranks replicate.
    "gemma-3-12b": Architecture(_gemma3(48, 3840, 15360, 262208, 16, 8, 1024), ((20, 1), (20, 9), (29, 3), (35, 14))),
    "gemma-3-1b": Architecture(_gemma3(26, 1152, 6912, 262144, 4, 1, 512), ((9, 0), (9, 3), (14, 2), (17, 1))),
    "qwen3-1.7b": Architecture(_qwen3(28, 2048, 6144, 151936, 16, 128), ((11, 13), (14, 15), (6, 12), (13, 6))),
    "llama-3.2-1b": Architecture(_llama(16, 2048, 8192, 128256, 32), ((5, 3), (8, 30), (11, 7), (12, 0))),
    # Gemma-4-E4B's heads, widths of heads and window in few layers: starts in seconds.
    "gemma-4-medium": Architecture(_MEDIUM, _SHARED),
    "gemma-4-medium-wrapped": Architecture(_wrapped(_MEDIUM), _SHARED),
    "gemma-4-tiny": Architecture(_TINY, ((5, 3), (3, 0), (4, 2), (6, 1))),
    "gemma-4-tiny-wrapped": Architecture(_wrapped(_TINY), _SHARED),
    "gemma-3-tiny": Architecture(_gemma3(6, 64, 128, 4096, 4, 1, 32), ((1, 3), (5, 0))),
    "qwen3-tiny": Architecture(_qwen3(4, 64, 128, 4096, 4, 32), ((1, 3), (2, 0))),
    "llama-tiny": Architecture(_llama(4, 256, 256, 4096, 4), ((1, 3), (2, 0))),
}
