"""Whether a preset can run on this machine's GPU, found out before anything of it is downloaded or loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec

from engine.gpus import gpus, largest
from engine.models import ModelError
from engine.presets import Part, Preset, PresetError, load_preset, preset_ids

Gpus = tuple[tuple[str, float, float], ...]


def has_vllm() -> bool:
    """Whether vLLM is installed. Does not load it."""
    return find_spec("vllm") is not None


def check(
    preset: Preset,
    part: Part | None = None,
    *,
    look: Callable[[], Gpus] = gpus,
    vllm: Callable[[], bool] = has_vllm,
) -> None:
    """Raises `ModelError` with what keeps a preset, or that part of it, from running here. See `obstacle`."""
    if why := obstacle(preset, part, look=look, vllm=vllm):
        raise ModelError(why)


def obstacle(
    preset: Preset,
    part: Part | None = None,
    *,
    look: Callable[[], Gpus] = gpus,
    vllm: Callable[[], bool] = has_vllm,
) -> str:
    """What keeps a preset, or that part of it, from running here, as far as its GPU goes: one sentence, "" for nothing.

    `look` and `vllm` say what this machine has.
    """
    need_gib = preset.part_gpu_gib(part) if part else preset.gpu_gib
    wants_vllm = preset.part_uses_vllm(part) if part else preset.uses_vllm
    name = f"The {part} of {preset.id}" if part else preset.id
    if need_gib and (short := shortage(name, need_gib, look())):
        return short
    if wants_vllm and not vllm():
        return (
            f"{name} runs on vLLM, which is not installed here: `surtitle setup --gpu` makes an environment "
            "with it and says how to start it."
        )
    return ""


def shortage(name: str, need_gib: float, here: Gpus) -> str:
    """Why so much memory of a GPU cannot be had, and what can run instead: one sentence, "" when it can be had."""
    if not here:
        return f"{name} needs a GPU with {_up(need_gib)} GiB of memory, and there is none here: {_on_the_cpu()}."
    _, total_gib, free_gib = here[largest(here)]
    if free_gib >= need_gib:
        return ""
    needs = f"{name} needs {_up(need_gib)} GiB of GPU memory"
    if total_gib < need_gib:
        return f"{needs}, {_down(free_gib)} GiB are free: {advice(free_gib)}."
    free = f"{_down(free_gib)} of {_down(total_gib)} GiB are free"
    return f"{needs}, {free}: close what uses the rest; until then, {advice(free_gib)}."


def advice(free_gib: float) -> str:
    """What runs with so much free GPU memory: the shipped preset that asks for most of it, or one for the CPU."""
    fitting = [preset for preset in shipped() if preset.uses_vllm and preset.gpu_gib <= free_gib]
    if fitting:
        return f"{max(fitting, key=lambda preset: preset.gpu_gib).id} fits"
    return f"no preset for a GPU fits, {_on_the_cpu()}"


def _on_the_cpu() -> str:
    names = [p.id for p in shipped() if not p.gpu_gib and not p.uses_vllm and p.translator.kind != "remote"]
    return f"{names[0]} runs on the CPU" if names else "remote runs where an MT server is"


def shipped() -> Iterator[Preset]:
    """Every shipped preset that can be read."""
    for name in preset_ids():
        with suppress(PresetError):  # whoever chooses that one is told
            yield load_preset(name)


def _up(gib: float) -> str:
    """Never less than is needed, to a tenth."""
    return f"{math.ceil(round(gib * 10, 3)) / 10:g}"


def _down(gib: float) -> str:
    """Never more than there is, to a tenth."""
    return f"{math.floor(round(gib * 10, 3)) / 10:g}"
