"""The picture of a training: loss and learning rate by step, chrF of the development rows by epoch."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.finetune.rows import TARGETS, FinetuneError


@dataclass(frozen=True, slots=True)
class Summary:
    """One training: its settings, and the development scores of the adapter that it wrote."""

    log: Path
    settings: dict[str, Any]
    epoch: int
    score: float
    loss: float
    chrf: dict[str, float]
    chrf_half: dict[str, float]
    seconds: float

    def __str__(self) -> str:
        kind = "all weights, reduced" if self.settings["full"] else "low rank"
        whole, half = (
            " ".join(f"{language} {value:.1f}" for language, value in scores.items())
            for scores in (self.chrf, self.chrf_half)
        )
        settings = self.settings
        return (
            f"{self.log}: {kind} {settings['rank']}, rate {settings['rate']:g}, {settings['rows']} rows, "
            f"epoch {self.epoch}, score {self.score:.2f}, loss {self.loss:.3f}, "
            f"chrF {whole}; half sentences {half}; {self.seconds:.0f} s"
        )


def summary(log: Path) -> Summary:
    """What a log says of the adapter that was written. Raises `FinetuneError` when none was."""
    lines = _read(log)
    written, settings = _of(lines, "written"), _of(lines, "settings")
    if not written or not settings:
        raise FinetuneError(f"{log} records no adapter that was written.")
    # The reduced change of a full training is scored a second time in its last epoch.
    scored = [line for line in _of(lines, "development") if line["score"] == written[-1]["score"]][-1]
    return Summary(
        log,
        settings[0],
        scored["epoch"],
        scored["score"],
        scored["loss"],
        scored["chrf"],
        scored["chrf_half"],
        lines[-1]["seconds"],
    )


def draw(log: Path, picture: Path) -> None:
    """Draw the JSON Lines log of a training as PNG. Raises `FinetuneError` for a log without steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lines = _read(log)
    steps = _of(lines, "step")
    scored = _of(lines, "development")
    if not steps or not scored:
        raise FinetuneError(f"{log} records no training.")
    epochs = max(line["epoch"] for line in scored) or 1
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4), layout="constrained")
    left.plot([line["done"] * epochs for line in steps], [line["loss"] for line in steps], label="training", lw=0.8)
    left.plot([line["epoch"] for line in scored], [line["loss"] for line in scored], "o-", label="development")
    left.set(xlabel="epoch", ylabel="loss per token (nat)", ylim=(0, _ceiling(steps)))
    left.legend()
    for language in TARGETS:
        (line,) = right.plot(
            [line["epoch"] for line in scored], [line["chrf"][language] for line in scored], "o-", label=language
        )
        right.plot(
            [line["epoch"] for line in scored],
            [line["chrf_half"][language] for line in scored],
            "o:",
            color=line.get_color(),
        )
    right.set(xlabel="epoch", ylabel="chrF, development rows (dotted: half sentences)")
    right.legend()
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


def _read(log: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise FinetuneError(f"{log} cannot be read as the log of a training: {error}.") from error


def _of(lines: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    return [line for line in lines if line.get("what") == what]


def _ceiling(steps: list[dict[str, Any]]) -> float:
    """A height of the picture that the first steps do not spoil."""
    later = [line["loss"] for line in steps[len(steps) // 20 :]]
    return 1.3 * max(later)
