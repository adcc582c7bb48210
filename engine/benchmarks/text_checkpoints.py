"""Model folders of a translator with everything but weights: configuration, made-up tokeniser, chat form, heads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.alignatt.heads import Head, HeadSet, head_set_to_json
from engine.benchmarks.architectures import ARCHITECTURES
from engine.benchmarks.speech_checkpoints import vocabulary_of

# Their numbers are those of Gemma's configurations.
MARKS = ("<pad>", "<eos>", "<bos>", "<unk>", "<|turn>", "<turn|>")
CHAT = (
    "<bos>{% for message in messages %}<|turn>{{ message['role'] }}\n{{ message['content'] }}<turn|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|turn>model\n{% endif %}"
)


def write(name: str, folder: Path) -> Path:
    """The folder of a named architecture. Its words are syllables, as those of the made-up recogniser."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    architecture = ARCHITECTURES[name]
    architecture.write(folder)
    words, merges = vocabulary_of(text_config(name)["vocab_size"] - len(MARKS))
    numbers = {mark: at for at, mark in enumerate(MARKS)} | {word: len(MARKS) + at for word, at in words.items()}
    tokeniser = Tokenizer(models.BPE(vocab=numbers, merges=merges))
    tokeniser.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokeniser.decoder = decoders.ByteLevel()
    tokeniser.add_special_tokens(list(MARKS))
    tokeniser.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>", "unk_token": "<unk>",
        "chat_template": CHAT, "model_max_length": 131_072,
    }  # fmt: skip
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


def write_heads(name: str, direction: str, query_row: str, folder: Path) -> Path:
    """A folder with a head set of the heads that benchmarks watch in this architecture."""
    text = text_config(name)
    heads = HeadSet(
        model=name,
        architecture=str(ARCHITECTURES[name].config["architectures"][0]),
        layers=int(text["num_hidden_layers"]),
        query_heads=int(text["num_attention_heads"]),
        direction=direction,
        query_row=query_row,
        prompt_layout="chat-1",
        heads=tuple(Head(layer, head) for layer, head in ARCHITECTURES[name].heads),
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{direction}.json").write_text(json.dumps(head_set_to_json(heads)), encoding="utf-8")
    return folder


def text_config(name: str) -> dict[str, Any]:
    """The configuration of the architecture's text model."""
    config = ARCHITECTURES[name].config
    inner: dict[str, Any] = config.get("text_config", config)
    return inner
