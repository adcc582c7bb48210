"""What the preset dialog shows, without Qt: every preset, what it needs against what this machine has, and what keeps
it from being used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from app.files import APP
from app.settings import Speed
from engine.messages import Machine
from engine.presets import Preset, PresetError, load_preset, preset_ids

GIB = 2**30
GPU, MEMORY, DISK = "gpu", "memory", "disk"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing a preset needs, in GiB. `here_gib` is None while the machine has not been asked; `name` of what is
    here, and of a GPU `total_gib`: what closing other programs can give."""

    kind: str
    needed_gib: float
    here_gib: float | None
    name: str = ""
    total_gib: float | None = None

    @property
    def met(self) -> bool:
        return self.here_gib is None or self.here_gib >= self.needed_gib


@dataclass(frozen=True, slots=True)
class Weights:
    """One model of a preset. `present` is None when only loading will tell; `own`: a path of the person's."""

    name: str
    present: bool | None
    size_bytes: int = 0
    own: bool = False


@dataclass(frozen=True, slots=True)
class PresetCard:
    """One preset as the dialog shows it. `licences`: (name, accepted). `library`: one that it needs and that is not
    installed, "" for none."""

    preset: Preset
    needs: tuple[Need, ...]
    weights: tuple[Weights, ...]
    licences: tuple[tuple[str, bool], ...]
    speed: Speed | None = None
    library: str = ""

    @property
    def unmet(self) -> tuple[Need, ...]:
        """What this machine lacks; with all weights here already, room on the disk is not needed any more."""
        stored = all(weights.present for weights in self.weights)
        return tuple(need for need in self.needs if not need.met and not (need.kind == DISK and stored))

    @property
    def missing(self) -> tuple[Weights, ...]:
        """Packaged weights that are not installed; nothing but an installation brings them."""
        return tuple(weights for weights in self.weights if weights.present is False)

    @property
    def usable(self) -> bool:
        return not self.unmet and not self.missing and not self.library

    @property
    def unaccepted(self) -> tuple[str, ...]:
        return tuple(name for name, accepted in self.licences if not accepted)

    def targets(self, source: str) -> list[str]:
        """Languages it translates this one to."""
        return [b for a, b in self.preset.pairs if a == source]

    @property
    def remote(self) -> bool:
        """Another machine translates, or a server on this one."""
        return self.preset.translator.kind == "remote"

    @property
    def sources(self) -> list[str]:
        """Languages that can be spoken."""
        return list(dict.fromkeys(a for a, _ in self.preset.pairs))


def preset_cards(
    machine: Machine | None,
    accepted: Sequence[str] = (),
    speeds: Mapping[str, Speed] | None = None,
    models: Mapping[str, str] | None = None,
    free_gib: float | None = None,
) -> tuple[list[PresetCard], list[str]]:
    """Every preset, those that can be used first, and one sentence for each that cannot be read.

    `models`: own weights, as in the settings; `free_gib`: on the disk that weights go to.
    """
    cards, problems = [], []
    for preset_id in preset_ids():
        try:
            preset = load_preset(preset_id)
        except PresetError as error:
            problems.append(str(error))
            continue
        cards.append(
            PresetCard(
                preset,
                _needs(preset, machine, free_gib),
                _weights(preset, machine, models or {}),
                tuple((name, name in accepted) for name in preset.needs.licences),
                (speeds or {}).get(preset_id),
                "vLLM" if machine and preset.uses_vllm and not machine.vllm else "",
            )
        )
    return sorted(cards, key=lambda card: not card.usable), problems


def _needs(preset: Preset, machine: Machine | None, free_gib: float | None) -> tuple[Need, ...]:
    needs, found = preset.needs, []
    if preset.gpu_gib:
        if machine is None:
            found.append(Need(GPU, preset.gpu_gib, None))
        else:
            name, total_gib, here_gib = max(machine.gpus, key=lambda gpu: gpu[1], default=("", 0.0, 0.0))
            found.append(Need(GPU, preset.gpu_gib, here_gib, name, total_gib))
    if needs.ram_gib:
        found.append(Need(MEMORY, needs.ram_gib, machine.ram_gib if machine else None))
    if needs.disk_gib:
        found.append(Need(DISK, needs.disk_gib, free_gib))
    return tuple(found)


def _weights(preset: Preset, machine: Machine | None, models: Mapping[str, str]) -> tuple[Weights, ...]:
    known = {name: (present, size) for name, present, _, size in machine.models} if machine else {}
    rows = []
    parts = {
        "recogniser.model": preset.recogniser.model,
        "recogniser.aligner": preset.recogniser.aligner,
        "translator.model": preset.translator.model,
    }
    fits = {"recogniser.model": preset.recogniser.kind == "whisper"}
    fits["translator.model"] = preset.translator.kind == "llamacpp"
    for part, model in parts.items():
        if model not in preset.models:
            continue  # it is on the server, or there is none
        if fits.get(part) and (own := models.get(part)):
            rows.append(Weights(own, _exists(own), own=True))
        else:
            present, size = known.get(model, (None, 0))
            rows.append(Weights(model, present, size))
    return tuple(rows)


def _exists(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except (OSError, RuntimeError):  # a folder that may not be looked into, a user who is unknown
        return False


def disk_free_gib() -> float | None:
    """Room on the disk that weights go to."""
    folder = Path(os.environ.get("HF_HOME") or platformdirs.user_cache_dir(APP, appauthor=False))
    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        return shutil.disk_usage(there).free / GIB
    except (OSError, StopIteration):
        return None
