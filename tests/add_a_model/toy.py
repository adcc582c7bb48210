"""`python -m tests.add_a_model.toy FOLDER`: a tiny translator that has really learnt its trade, made in half a minute.

It is a Granite model of 2 layers with 4 heads, trained on the spot to translate sentences about animals from English to
German ("two young dogs sleep here"), word by word. FOLDER gets the model as the hub has them (`toy-translator`) and 60
sentence pairs with their word alignments (`pairs.jsonl`), which are none of those it was trained on.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from engine.mt.contract import Source
from engine.mt.hf_tokens import HfTokens
from engine.mt.prompt import ChatLayout

NUMBERS = {"two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs", "nine": "neun"}
KINDS = {"young": "junge", "old": "alte", "small": "kleine", "big": "große", "white": "weiße", "black": "schwarze"}
ANIMALS = {"dogs": "Hunde", "cats": "Katzen", "birds": "Vögel", "horses": "Pferde", "cows": "Kühe", "ducks": "Enten"}
VERBS = {"sleep": "schlafen", "eat": "essen", "sing": "singen", "wait": "warten", "play": "spielen"}
PLACES = {"here": "hier", "today": "heute", "outside": "draußen", "again": "wieder"}
GERMAN = {**NUMBERS, **KINDS, **ANIMALS, **VERBS, **PLACES, "and": "und"}

SPECIALS = ["<pad>", "<|im_start|>", "<|im_end|>"]
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
BATCH = 24
ENOUGH = 0.03  # mean loss of the target tokens at which it can do everything that is asked of it
STEPS = 600


def sentence(chance: random.Random) -> list[str]:
    """English words of one sentence."""
    words = _animals(chance)
    if chance.random() < 0.4:
        words += ["and", *_animals(chance)]
    words.append(chance.choice(list(VERBS)))
    return words + chance.sample(list(PLACES), chance.randint(0, 2))


def _animals(chance: random.Random) -> list[str]:
    return [
        chance.choice(list(NUMBERS)),
        *chance.sample(list(KINDS), chance.randint(0, 2)),
        chance.choice(list(ANIMALS)),
    ]


def tokeniser() -> Any:
    """One token for each word and one for the program's instruction, bytes for everything else."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    instruction = ChatLayout(lambda messages: messages[0][1] + messages[1][1]).render(Source((), "en", "de")).text
    words = [*GERMAN, *GERMAN.values()]
    texts = [*words, *(f" {word}" for word in words), "system", "user", "assistant"] * 3
    trainer = trainers.BpeTrainer(
        vocab_size=800,
        special_tokens=SPECIALS,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    made.add_tokens([AddedToken(instruction, normalized=False)])  # the toy reads it at a glance, and trains faster
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<|im_end|>")
    wrapped.chat_template = CHATML
    return wrapped


def model(vocabulary: int) -> Any:
    """Random weights."""
    return transformers.GraniteForCausalLM(
        transformers.GraniteConfig(
            vocab_size=vocabulary,
            hidden_size=64,
            intermediate_size=128,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            attention_multiplier=0.25,
            max_position_embeddings=1024,
            pad_token_id=0,
            bos_token_id=None,
            eos_token_id=2,
            tie_word_embeddings=False,
        )
    )


class Teacher:
    """Batches as the program will ask: its own prompt, a sentence or the beginning of one, the translation."""

    def __init__(self, wrapped: Any, chance: random.Random, held_out: set[str]) -> None:
        self._tokens, self._chance, self._held_out = HfTokens(wrapped, "granite", [2]), chance, held_out
        self._layout = ChatLayout(self._tokens.chat_template)

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Ids and labels, both [BATCH, tokens]; -100 where nothing is asked."""
        rows = [self._row() for _ in range(BATCH)]
        longest = max(len(ids) for ids, _ in rows)
        ids = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
        labels = [[-100] * asked + row[asked:] + [-100] * (longest - len(row)) for row, asked in rows]
        return ids, torch.tensor(labels)

    def _row(self) -> tuple[list[int], int]:
        words = sentence(self._chance)
        while " ".join(words) in self._held_out:
            words = sentence(self._chance)
        words = words[: self._chance.randint(1, len(words))]
        prompt = self._tokens.tokenise(self._layout.render(Source(tuple(words), "en", "de"))).ids
        return [*prompt, *self._tokens.encode(" ".join(GERMAN[word] for word in words)), 2], len(prompt)


def train(learner: Any, teacher: Teacher) -> float:
    """Train; the last mean loss."""
    optimiser = torch.optim.AdamW(learner.parameters(), weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, max_lr=6e-3, total_steps=STEPS)
    mean = 5.0
    for step in range(STEPS):
        ids, labels = teacher.batch()
        asked = labels[:, 1:] != -100
        hidden = learner.model(input_ids=ids).last_hidden_state[:, :-1][asked]
        loss = torch.nn.functional.cross_entropy(learner.lm_head(hidden), labels[:, 1:][asked])
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        mean += 0.05 * (loss.item() - mean)
        if step % 100 == 0:
            print(f"step {step}: loss {mean:.3f}", file=sys.stderr, flush=True)
    return mean


def pairs(chance: random.Random, count: int) -> list[dict[str, Any]]:
    """Different sentences with their translation and the alignment of their words."""
    found: dict[str, dict[str, Any]] = {}
    while len(found) < count:
        words = sentence(chance)
        if len(words) < 4:
            continue
        german = [GERMAN[word] for word in words]
        found[" ".join(words)] = {
            "source_text": " ".join(words),
            "target_text": " ".join(german),
            "source_words": words,
            "target_words": german,
            "alignments": [[at, at + 1, at, at + 1] for at in range(len(words))],
        }
    return list(found.values())


def main(folder: Path) -> int:
    """Make everything; 1 when the model has not learnt it."""
    torch.manual_seed(7)
    torch.set_num_threads(1)
    chance = random.Random(7)
    held_out = pairs(chance, 60)
    wrapped = tokeniser()
    learner = model(len(wrapped))
    loss = train(learner, Teacher(wrapped, chance, {pair["source_text"] for pair in held_out}))
    if loss >= ENOUGH:
        print(f"The toy model has not learnt its sentences (loss {loss:.3f}): try again.", file=sys.stderr)
        return 1
    place = folder / "toy-translator"
    learner.save_pretrained(place)
    wrapped.save_pretrained(place)
    lines = "".join(json.dumps(pair, ensure_ascii=False) + "\n" for pair in held_out)
    (folder / "pairs.jsonl").write_text(lines, encoding="utf-8")
    print(f"Made {place} and {folder / 'pairs.jsonl'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
