"""Training: a low-rank adapter, or all linear layers and then the nearest low-rank change, on answers alone.

Every epoch draws its half sentences anew. After each, translations of the development rows are scored, and the best
adapter so far is written out: an interrupted training leaves that one.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from engine.finetune.align import Words
from engine.finetune.batches import IGNORED, Batch, Coded, batches, code, stack
from engine.finetune.examples import Example, draw_examples, full, half
from engine.finetune.export import LAYERS, MODULES, Note, export
from engine.finetune.generate import Greedy
from engine.finetune.rows import TARGETS, FinetuneError, Row
from engine.finetune.scores import chrf
from engine.finetune.verify import same_files, same_logits
from engine.finetune.weights import Base, LowRank, add_low_rank, best_low_rank, matrices
from engine.mt.hf_weights import Loaded
from engine.mt.prompt import TalksLayout

DEVELOPMENT_EPOCH = -1  # its examples are drawn once, apart from every epoch of training
LOGGED_STEPS = 10
VERIFIED = 24  # examples whose logits are compared


@dataclass(frozen=True, slots=True)
class Settings:
    """What a training is made of. `rate`: the highest learning rate; `batch_tokens`: with padding.

    `full`: train the linear layers themselves, then take the nearest change of the given rank. `max_steps` ends
    early, for trials.
    """

    seed: int
    epochs: int = 5
    rate: float = 6e-4
    warm_up: float = 0.06
    batch_tokens: int = 8192
    clip: float = 1.0
    rank: int = 28
    alpha: float = 56.0
    dropout: float = 0.05
    modules: tuple[str, ...] = MODULES
    full: bool = False
    max_steps: int | None = None

    @property
    def shape(self) -> LowRank:
        return LowRank(self.rank, self.alpha, self.dropout, self.modules)


@dataclass(frozen=True, slots=True)
class Development:
    """What is scored during training: examples for the loss, whole and half sentences to translate."""

    coded: list[Coded]
    whole: list[Example]
    halves: list[Example]


class Trainer:
    """One training. `log`: a JSON Lines file of what happens; `folder`: where the adapter goes."""

    def __init__(
        self,
        loaded: Loaded,
        base: Base,
        settings: Settings,
        note: Note,
        folder: Path,
        log: Path,
        *,
        say: Callable[[str], None],
    ) -> None:
        self._model, self._tokeniser = loaded.model, loaded.tokeniser
        self._base, self._settings, self._note, self._folder = base, settings, note, folder
        self._greedy = Greedy(loaded.model, loaded.tokeniser, loaded.end_ids)
        self._layout = TalksLayout()
        self._device = loaded.model.device
        self._pad = int(loaded.tokeniser.pad_token_id or 0)
        self._head = loaded.model.lm_head.weight.detach().float()
        self._say, self._log, self._started = say, log, time.perf_counter()
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("", encoding="utf-8")
        self._best: float | None = None
        self._kept: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def run(self, rows: Sequence[Row], development: Sequence[Row], links: dict[tuple[str, str], Words]) -> None:
        """Train and export. Raises `FinetuneError` when the loss is no number."""
        settings = self._settings
        torch.manual_seed(settings.seed)
        torch.set_float32_matmul_precision("high")
        dev = self._development(development, links)
        self._note_line(
            "settings", **asdict(settings), rows=len(rows), development=len(development), base=self._base.sha256
        )
        if settings.full:
            before = self._unfreeze()
        else:
            add_low_rank(self._model, settings.shape)
        self._score(dev, 0, keep=False)
        self._epochs(rows, links, dev)
        if settings.full:
            self._reduce(before)
            self._score(dev, settings.epochs, keep=True)
        self._verify(dev)

    # ------------------------------------------------------------ steps

    def _epochs(self, rows: Sequence[Row], links: dict[tuple[str, str], Words], dev: Development) -> None:
        trained = [parameter for parameter in self._model.parameters() if parameter.requires_grad]
        optimiser = torch.optim.AdamW(
            trained, lr=self._settings.rate, betas=(0.9, 0.98), weight_decay=0.0, fused=self._device.type == "cuda"
        )
        step = 0
        with ThreadPoolExecutor(1) as pool:
            drawn = pool.submit(self._draw, rows, links, 0)
            for epoch in range(self._settings.epochs):
                groups = drawn.result()
                if epoch + 1 < self._settings.epochs:
                    drawn = pool.submit(self._draw, rows, links, epoch + 1)
                self._model.train()
                for at, group in enumerate(groups):
                    done = (epoch + at / len(groups)) / self._settings.epochs
                    self._step(optimiser, trained, group, done, step)
                    step += 1
                    if step == self._settings.max_steps:
                        drawn.result()
                        self._score(dev, epoch + 1, keep=not self._settings.full)
                        return
                drawn.result()  # a tokeniser is not for two threads
                self._score(dev, epoch + 1, keep=not self._settings.full)

    def _draw(self, rows: Sequence[Row], links: dict[tuple[str, str], Words], epoch: int) -> list[list[Coded]]:
        examples, counts = draw_examples(rows, links, self._settings.seed, epoch)
        coded = code(examples, self._layout, self._tokeniser)
        chance = random.Random(f"{self._settings.seed} {epoch}")
        groups = list(batches(coded, self._settings.batch_tokens, chance))
        tokens = sum(len(example.ids) for example in coded)
        padded = sum(len(group) * max(len(example.ids) for example in group) for group in groups)
        learnt = sum(example.learnt for example in coded)
        self._note_line(
            "examples",
            epoch=epoch,
            **counts,
            batches=len(groups),
            tokens=tokens,
            padding=1 - tokens / padded,
            learnt=learnt,
        )
        return groups

    def _step(
        self,
        optimiser: torch.optim.Optimizer,
        trained: list[torch.nn.Parameter],
        group: list[Coded],
        done: float,
        step: int,
    ) -> None:
        for settings in optimiser.param_groups:
            settings["lr"] = self._settings.rate * _schedule(done, self._settings.warm_up)
        batch = stack(group, self._pad, self._device)
        total, tokens = self._loss(batch)
        loss = total / tokens
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, self._settings.clip)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        if step % LOGGED_STEPS == 0:
            value = float(loss.detach())
            if not math.isfinite(value):
                raise FinetuneError(f"The loss of step {step} is {value}; choose a lower learning rate.")
            self._note_line("step", step=step, done=done, loss=value, rate=optimiser.param_groups[0]["lr"])

    def _loss(self, batch: Batch) -> tuple[torch.Tensor, int]:
        """Summed cross-entropy of the learnt tokens, and their number. Only their logits are computed."""
        kind = self._device.type
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda"):
            hidden = self._model.model(
                input_ids=batch.ids, attention_mask=batch.mask, use_cache=False
            ).last_hidden_state
        learnt = batch.labels != IGNORED
        # In bfloat16 neighbouring logits would be an eighth apart.
        logits = functional.linear(hidden[learnt].float(), self._head)
        labels = batch.labels[learnt]
        return functional.cross_entropy(logits, labels, reduction="sum"), len(labels)

    # ------------------------------------------------------------ scores

    def _development(self, rows: Sequence[Row], links: dict[tuple[str, str], Words]) -> Development:
        examples, _ = draw_examples(rows, links, self._settings.seed, DEVELOPMENT_EPOCH)
        pairs = [(row, language) for row in rows for language in TARGETS]
        return Development(
            code(examples, self._layout, self._tokeniser),
            [full(row, language) for row, language in pairs],
            [half(row, language, links) for row, language in pairs],
        )

    def _score(self, dev: Development, epoch: int, *, keep: bool) -> None:
        """Loss and chrF on the development rows; with `keep`, the adapter is written when it is the best so far."""
        self._model.eval()
        total, tokens = 0.0, 0
        with torch.inference_mode():
            for group in batches(dev.coded, self._settings.batch_tokens):
                loss, count = self._loss(stack(group, self._pad, self._device))
                total, tokens = total + float(loss), tokens + count
        whole, halves = (self._chrf(examples) for examples in (dev.whole, dev.halves))
        score = (sum(whole.values()) + sum(halves.values())) / (2 * len(TARGETS))
        self._note_line("development", epoch=epoch, loss=total / tokens, chrf=whole, chrf_half=halves, score=score)
        if keep and (self._best is None or score > self._best):
            self._best = score
            self._kept = {
                name: (a.detach().clone(), b.detach().clone()) for name, (a, b) in matrices(self._model).items()
            }
            export(self._folder, self._model, self._base, self._settings.alpha, self._note)
            self._note_line("written", epoch=epoch, score=score)

    def _verify(self, dev: Development) -> None:
        """Go back to the adapter that was written, and compare its files with it."""
        with torch.no_grad():
            for name, pair in matrices(self._model).items():
                for values, kept in zip(pair, self._kept[name], strict=True):
                    values.copy_(kept)
        shared = same_files(self._folder)
        self._model.float()  # in bfloat16 two equal models differ by more than float16 takes away
        apart = same_logits(self._folder, self._model, [example.ids for example in dev.coded[:VERIFIED]])
        self._note_line("verified", matrices=shared, logits_apart=apart, score=self._best)

    def _chrf(self, examples: Sequence[Example]) -> dict[str, float]:
        made = self._greedy.translate([example.source for example in examples], self._layout)
        return {
            language: chrf(
                [text for text, example in zip(made, examples, strict=True) if example.source.target_lang == language],
                [example.rest for example in examples if example.source.target_lang == language],
            )
            for language in TARGETS
        }

    # ------------------------------------------------------------ all weights, then the nearest low rank

    def _linear(self) -> Iterator[tuple[str, torch.nn.Linear]]:
        wanted = tuple(name for name in LAYERS if name.split(".")[1] in self._settings.modules)
        for name, module in self._model.named_modules():
            if name.endswith(wanted) and isinstance(module, torch.nn.Linear):
                yield name, module

    def _unfreeze(self) -> dict[str, torch.Tensor]:
        """Make the linear layers trainable, in float32; a copy of their weights."""
        self._model.requires_grad_(False)
        before = {}
        for name, module in self._linear():
            before[name] = module.weight.detach().clone()
            module.weight = torch.nn.Parameter(module.weight.detach().float())
        return before

    def _reduce(self, before: dict[str, torch.Tensor]) -> None:
        """Put the old weights back, and matrices on them that come nearest to what was learnt."""
        changes = {name: module.weight.detach() - before[name].float() for name, module in self._linear()}
        for name, module in self._linear():
            module.weight = torch.nn.Parameter(before[name], requires_grad=False)
        add_low_rank(self._model, self._settings.shape)
        scale = self._settings.alpha / self._settings.rank
        kept, whole = 0.0, 0.0
        with torch.no_grad():
            for name, (a, b) in matrices(self._model).items():
                near_a, near_b = best_low_rank(changes[name], self._settings.rank, scale)
                a.copy_(near_a)
                b.copy_(near_b)
                kept += float(((scale * near_b @ near_a) ** 2).sum())
                whole += float((changes[name] ** 2).sum())
        self._note_line("reduced", kept=kept / whole if whole else 1.0)

    # ------------------------------------------------------------ log

    def _note_line(self, what: str, **values: Any) -> None:
        line = {"what": what, "seconds": round(time.perf_counter() - self._started, 2), **values}
        with self._log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if what != "step":
            self._say(json.dumps(line))


def _schedule(done: float, warm_up: float) -> float:
    """Share of the highest rate at a share of the training: linear up, then a half cosine down to a hundredth."""
    if done < warm_up:
        return max(done, 1e-3) / warm_up
    return 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * (done - warm_up) / (1 - warm_up)))
