"""The words of the preset dialog, in the interface's language."""

from __future__ import annotations

import math

from PySide6.QtCore import QT_TRANSLATE_NOOP

from app.downloads import Download
from app.i18n import fill, translate
from app.preset_cards import DISK, GPU, MEMORY, Need, PresetCard, Weights
from engine.presets import LANGUAGE_NAMES

_LISTED: tuple[object, ...] = (
    QT_TRANSLATE_NOOP("Languages", "Czech"),
    QT_TRANSLATE_NOOP("Languages", "German"),
    QT_TRANSLATE_NOOP("Languages", "English"),
    QT_TRANSLATE_NOOP("Languages", "Spanish"),
    QT_TRANSLATE_NOOP("Languages", "French"),
    QT_TRANSLATE_NOOP("Languages", "Italian"),
    QT_TRANSLATE_NOOP("Languages", "Chinese"),
    QT_TRANSLATE_NOOP("PresetNames", "Laptop"),
    QT_TRANSLATE_NOOP("PresetNames", "Remote translator"),
    QT_TRANSLATE_NOOP("PresetNames", "demo quality"),
    QT_TRANSLATE_NOOP(
        "PresetNames", "Recognises speech on this machine and has an MT server, here or on another host, translate it."
    ),
    QT_TRANSLATE_NOOP("PresetNames", "Runs on two CPU cores without a GPU, from models that come with the program."),
    QT_TRANSLATE_NOOP("PresetNames", "Gemma, low latency"),
    QT_TRANSLATE_NOOP("PresetNames", "Gemma, high latency"),
    QT_TRANSLATE_NOOP("PresetNames", "Qwen, low latency"),
    QT_TRANSLATE_NOOP(
        "PresetNames",
        "Qwen3-ASR and Gemma 4 E4B beside each other on one GPU of 40 GB, a look at new speech every 0.85 s.",
    ),
    QT_TRANSLATE_NOOP(
        "PresetNames",
        "Qwen3-ASR and Gemma 4 E4B beside each other on one GPU of 40 GB, a look at new speech every 1.5 s.",
    ),
    QT_TRANSLATE_NOOP(
        "PresetNames",
        "Qwen3-ASR and Qwen3 1.7B beside each other on one GPU of 16 GB, a look at new speech every 0.85 s.",
    ),
)
SLOW_S = 10.0  # nobody follows a talk so far behind
# Where the terms of a licence stand; any other is shown by its name only.
LICENCE_PAGES = {"Gemma Terms of Use": "https://ai.google.dev/gemma/terms"}


def language_name(code: str) -> str:
    """A language's name; its code where there is none."""
    return translate("Languages", LANGUAGE_NAMES.get(code, code))


def preset_text(text: str) -> str:
    """Title or description of a shipped preset; another's is shown as it stands."""
    return translate("PresetNames", text)


def languages_text(card: PresetCard) -> str:
    """Every pair, by the language that is spoken."""
    rows = []
    for source in card.sources:
        targets = ", ".join(map(language_name, card.targets(source)))
        rows.append(f"{language_name(source)} → {targets}")
    return "; ".join(rows)


def need_text(need: Need) -> str:
    """What is needed, and what is here."""
    match need.kind:
        case "gpu":
            head = fill(translate("Presets", "{size:.0f} GB of GPU memory"), size=math.ceil(need.needed_gib))
        case "memory":
            head = fill(translate("Presets", "{size:.1f} GB of memory"), size=need.needed_gib)
        case _:
            head = fill(translate("Presets", "{size:.1f} GB on disk"), size=need.needed_gib)
    if need.here_gib is None:
        return head
    if need.kind == GPU and not need.name:
        here = translate("Presets", "there is no GPU here")
    elif need.kind == GPU:
        here = fill(translate("Presets", "{name}: {size:.0f} GB free"), name=need.name, size=math.floor(need.here_gib))
    elif need.kind == MEMORY:
        here = fill(translate("Presets", "here: {size:.1f} GB"), size=need.here_gib)
    else:
        here = fill(translate("Presets", "{size:.0f} GB free"), size=need.here_gib)
    return f"{head} ({here})"


def weights_text(weights: Weights) -> str:
    """Where a model stands."""
    if weights.own:
        head = fill(translate("Presets", "your own model {name}"), name=weights.name)
    else:
        head = fill(translate("Presets", "model {name}"), name=weights.name)
    if weights.present:
        state = translate("Presets", "here")
    elif weights.present is False:
        state = translate("Presets", "missing")
    elif weights.size_bytes:
        state = fill(translate("Presets", "{size:.1f} GB to download"), size=weights.size_bytes / 1e9)
    elif "/" in weights.name:
        state = translate("Presets", "downloaded when it is first used")
    else:
        return head  # nobody has said yet whether it is here
    return f"{head} ({state})"


def reason_text(card: PresetCard) -> str:
    """Why a preset cannot be used here: one sentence, or ""."""
    for need in card.unmet:
        values = {"needed": need.needed_gib, "here": need.here_gib or 0.0, "name": need.name}
        if need.kind == GPU:  # whole numbers on the safe side, so that they show the difference
            values |= {"needed": math.ceil(need.needed_gib), "here": math.floor(need.here_gib or 0.0)}
        if need.kind == GPU and not need.name:
            return fill(translate("Presets", "It needs a GPU with {needed:.0f} GB, and there is none here."), **values)
        if need.kind == GPU and need.total_gib is not None and need.total_gib < need.needed_gib:
            text = translate("Presets", "It needs {needed:.0f} GB of GPU memory; {name} has {here:.0f} GB free.")
            return fill(text, **values)
        if need.kind == GPU:
            return fill(
                translate(
                    "Presets",
                    "It needs {needed:.0f} GB of GPU memory; {name} has {here:.0f} GB free. Close what uses it.",
                ),
                **values,
            )
        if need.kind == DISK:
            return fill(
                translate("Presets", "It needs {needed:.1f} GB on disk, and {here:.1f} GB are free: make room."),
                **values,
            )
        return fill(
            translate("Presets", "It needs {needed:.1f} GB of memory, and this machine has {here:.1f} GB."), **values
        )
    for weights in card.missing:
        if weights.own:
            return fill(translate("Presets", "Your model {name} is not there: choose another."), name=weights.name)
        return fill(
            translate("Presets", "The weights of {name} are not installed: run `make run`, which brings them."),
            name=weights.name,
        )
    if card.library:
        text = translate(
            "Presets", "It needs {name}, which is not installed: run `surtitle setup --gpu` in a terminal."
        )
        return fill(text, name=card.library)
    return ""


def speed_text(card: PresetCard) -> str:
    """How it ran here, or that it has not yet."""
    if card.speed is None:
        return translate(
            "Presets", "Not measured on this machine yet: its speed is shown here after the first session."
        )
    words = fill(
        translate("Presets", "Measured here: {lag:.1f} s behind the voice, {factor:.2f} s of work for each second."),
        lag=card.speed.lag_s,
        factor=card.speed.real_time_factor,
    )
    slow = translate("Presets", "Too slow for this machine.")
    return words if card.speed.lag_s < SLOW_S else f"{words} {slow}"


def download_text(row: Download) -> str:
    """How far a download is."""
    done = row.done_bytes / 1e6
    match row.state:
        case "done":
            return fill(translate("Presets", "{name}: complete, {done:.0f} MB"), name=row.name, done=done)
        case "failed":
            return fill(translate("Presets", "{name}: failed; start again to go on where it stopped"), name=row.name)
        case "cancelled":
            return fill(translate("Presets", "{name}: cancelled"), name=row.name)
    if row.total_bytes:
        size = fill(translate("Presets", "{done:.0f} of {total:.0f} MB"), done=done, total=row.total_bytes / 1e6)
    else:
        size = fill(translate("Presets", "{done:.0f} MB"), done=done)
    if row.state == "paused":
        paused = translate("Presets", "paused")
        return f"{row.name}: {size}, {paused}"
    parts = [size]
    if row.speed is not None:
        parts.append(fill(translate("Presets", "{speed:.1f} MB/s"), speed=row.speed / 1e6))
    if row.left_s is not None:
        minutes, seconds = divmod(round(row.left_s), 60)
        parts.append(fill(translate("Presets", "{minutes}:{seconds:02} left"), minutes=minutes, seconds=seconds))
    return f"{row.name}: {', '.join(parts)}"
