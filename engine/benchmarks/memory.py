"""`surtitle benchmark memory`: how a preset's GPU memory is split, from the dimensions of its models.

Computed and not measured, so it needs no GPU: weights in bfloat16, keys and values, and what the watched heads' queries
and outputs take follow from the dimensions. What is left of an engine's part is for the activations of a step, graphs
and the allocator.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.benchmarks.architectures import ARCHITECTURES
from engine.benchmarks.speech_checkpoints import SHAPES, SpeechShape
from engine.files import write_atomically
from engine.presets import CONTEXT_GIB, Preset, PresetError, load_preset, preset_ids

GIB = 2**30
BYTES = 2  # of a bfloat16
SPEECH = {
    "Qwen/Qwen3-ASR-1.7B": "qwen3-asr-1.7b",
    "Qwen/Qwen3-ASR-0.6B": "qwen3-asr-0.6b",
    "Qwen/Qwen3-ForcedAligner-0.6B": "qwen3-forced-aligner-0.6b",
}
TEXT = {"google/gemma-4-E4B-it": "gemma-4-e4b", "Qwen/Qwen3-1.7B": "qwen3-1.7b"}


@dataclass(frozen=True, slots=True)
class Part:
    """One engine's memory, in GiB. `tokens`: that its keys and values hold, if every layer keeps all of them."""

    engine: str
    model: str
    total: float
    weights: float
    keys_and_values: float
    shadows: float
    tokens: int

    @property
    def rest(self) -> float:
        """For the activations of a step, graphs and the allocator."""
        return self.total - self.weights - self.keys_and_values - self.shadows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("presets", nargs="*", help="which presets (default: all that need a GPU)")
    parser.add_argument("--json", type=Path, help="also write the figures here")


def run(args: argparse.Namespace) -> int:
    """Print the split. Status 2 for a preset that has none."""
    figures: dict[str, Any] = {}
    try:
        for name in args.presets or [name for name in preset_ids() if load_preset(name).memory_gib.mt]:
            preset = load_preset(name)
            parts = split(preset)
            figures[name] = {"needs_gib": preset.gpu_gib, "parts": [{**asdict(p), "rest": p.rest} for p in parts]}
            _show(preset, parts)
    except PresetError as error:
        print(error, file=sys.stderr)
        return 2
    if args.json:
        write_atomically(args.json, json.dumps(figures, indent=1) + "\n")
    return 0


def split(preset: Preset) -> list[Part]:
    """The parts of a preset's engines. Raises `PresetError` for models whose dimensions are not known here."""
    memory, pool = preset.memory_gib, preset.kv_cache_gib
    engines = [
        ("recogniser", preset.recogniser.model, memory.asr, pool.asr, 0),
        ("aligner", preset.recogniser.aligner, memory.aligner, pool.aligner, 0),
        ("translator", preset.translator.model, memory.mt, pool.mt, preset.policy.top_k),
    ]
    if not any(engine[2] for engine in engines):
        raise PresetError(f"Preset '{preset.id}' gives no engine a part of a GPU.")
    return [_part(preset, *engine) for engine in engines if engine[2]]


def _part(preset: Preset, engine: str, model: str, total: float, pool: float, heads: int) -> Part:
    if model in SPEECH:
        shape = SHAPES[SPEECH[model]]
        weights, token = speech_parameters(shape), 2 * shape.layers * shape.key_heads * shape.head_width
        shadows = 0.0
    elif model in TEXT:
        config = ARCHITECTURES[TEXT[model]].config
        weights, token = text_parameters(config), key_value_numbers(config)
        shadows = pool * shadow_share(config, heads)
    else:
        raise PresetError(f"The dimensions of {model} in preset '{preset.id}' are not known, so its split is not.")
    return Part(engine, model, total, weights * BYTES / GIB, pool, shadows, int(pool * GIB / (token * BYTES)))


def text_parameters(config: dict[str, Any]) -> int:
    """Numbers in the weights of a text model (Qwen3, Gemma 4), towers left out, tied embeddings counted once."""
    hidden, layers = config["hidden_size"], config["num_hidden_layers"]
    found: int = config["vocab_size"] * hidden
    for layer in range(layers):
        width = _width(config, layer)
        queries = 2 * hidden * config["num_attention_heads"] * width
        keys = 2 * hidden * config["num_key_value_heads"] * width
        found += queries + keys + 3 * hidden * config["intermediate_size"]
    if each := config.get("hidden_size_per_layer_input"):
        table = config["vocab_size_per_layer_input"] * layers * each
        found += table + hidden * layers * each + 2 * layers * hidden * each
    return found


def speech_parameters(shape: SpeechShape) -> int:
    """Numbers in the weights of Qwen3-ASR or its aligner."""
    text = {
        "vocab_size": shape.rows,
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_width,
        "intermediate_size": shape.inner,
    }
    width, channels = shape.encoder_width, shape.convolution
    encoder = shape.encoder_layers * (4 * width * width + 2 * width * shape.encoder_inner)
    convolutions = 9 * channels * (1 + 2 * channels) + 16 * channels * width  # 128 mel bands, halved three times
    return (
        text_parameters(text) + encoder + convolutions + width * (width + shape.hidden) + shape.classes * shape.hidden
    )


def key_value_numbers(config: dict[str, Any]) -> int:
    """Numbers that one token keeps in the layers that have keys and values of their own."""
    own = config["num_hidden_layers"] - config.get("num_kv_shared_layers", 0)
    return sum(2 * config["num_key_value_heads"] * _width(config, layer) for layer in range(own))


def shadow_share(config: dict[str, Any], heads: int) -> float:
    """What queries and outputs of so many heads take for each byte of keys and values (see `capture.worker`)."""
    own = config["num_hidden_layers"] - config.get("num_kv_shared_layers", 0)
    full = sum(_full(config, layer) for layer in range(own))
    together = min(full, own - full) or own  # layers of one KV-cache group
    return heads / config["num_key_value_heads"] / together


def _full(config: dict[str, Any], layer: int) -> bool:
    kinds = config.get("layer_types")
    return not kinds or kinds[layer] == "full_attention"


def _width(config: dict[str, Any], layer: int) -> int:
    wide = config.get("global_head_dim")
    return int(wide if wide and _full(config, layer) else config["head_dim"])


def _show(preset: Preset, parts: list[Part]) -> None:
    table = Table(title=f"{preset.id}, GiB (computed)")
    for name in ("engine", "weights", "keys, values", "tokens", "shadows", "rest", "all"):
        table.add_column(name, justify="left" if name == "engine" else "right")
    for part in parts:
        figures = (part.weights, part.keys_and_values, part.tokens, part.shadows, part.rest, part.total)
        table.add_row(part.engine, *(f"{value:,}" if isinstance(value, int) else f"{value:.2f}" for value in figures))
    table.add_row("contexts", *[""] * 5, f"{CONTEXT_GIB * len(parts):.2f}")
    table.add_row("asked for", *[""] * 5, f"{preset.gpu_gib:.2f}")
    Console().print(table)
