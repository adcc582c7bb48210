"""Tiny Qwen3-ASR checkpoints: transformers' own classes with seeded weights, saved under the published names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from engine.benchmarks.speech_checkpoints import SHAPES, config, write

# What transformers calls a tensor, and what the published checkpoints do.
NAMES = (
    ("model.multi_modal_projector.linear_1.", "thinker.audio_tower.proj1."),
    ("model.multi_modal_projector.linear_2.", "thinker.audio_tower.proj2."),
    ("model.audio_tower.", "thinker.audio_tower."),
    ("model.language_model.", "thinker.model."),
    ("lm_head.", "thinker.lm_head."),
    ("score.", "thinker.lm_head."),
)


def save(name: str, folder: Path) -> Any:
    """Write a checkpoint with weights; the transformers model that has the same ones, in float32."""
    import torch
    import transformers
    from safetensors.torch import save_file

    torch.manual_seed(11)
    write(name, folder)
    settings = settings_of(name)
    if SHAPES[name].classes:
        settings.num_labels = SHAPES[name].classes
        model = transformers.Qwen3ASRForTokenClassification(settings)
    else:
        model = transformers.Qwen3ASRForConditionalGeneration(settings)
    with torch.no_grad():
        for key, weight in model.named_parameters():
            if "norm" in key or key.endswith("ln_post.weight"):
                weight.copy_(1 + 0.2 * torch.randn_like(weight))
            elif weight.dim() > 1:
                weight.normal_(0, weight[0].numel() ** -0.5)
            else:
                weight.normal_(0, 0.1)
    state = {published(key): value.contiguous() for key, value in model.state_dict().items()}
    if SHAPES[name].tied and not SHAPES[name].classes:
        state.pop("thinker.lm_head.weight")
    save_file(state, folder / "model.safetensors")
    return model.eval()


def published(name: str) -> str:
    """The published name of a tensor."""
    return next((new + name[len(old) :] for old, new in NAMES if name.startswith(old)), name)


def settings_of(name: str) -> Any:
    """The transformers configuration of a named model."""
    import transformers

    shape, thinker = SHAPES[name], config(SHAPES[name])["thinker_config"]
    audio, text = dict(thinker["audio_config"]), dict(thinker["text_config"])
    for key in ("model_type", "conv_chunksize", "max_source_positions"):
        audio.pop(key)
    for key in ("model_type", "rope_scaling"):
        text.pop(key)
    text["rope_parameters"] = {"rope_type": "default", "rope_theta": text.pop("rope_theta")}
    return transformers.Qwen3ASRConfig(
        audio_config={"model_type": "qwen3_asr_encoder", **audio},
        text_config={"model_type": "qwen3", **text},
        audio_token_id=shape.number("<|audio_pad|>"),
        timestamp_token_id=shape.number("<timestamp>"),
        pad_token_id=shape.number("<|endoftext|>"),
        eos_token_id=[shape.number("<|im_end|>"), shape.number("<|endoftext|>")],
        tie_word_embeddings=shape.tied,
    )
