"""Head sets: which attention heads of a model carry source-target alignment, and how they were found."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA_VERSION = 1
QUERY_ROWS = ("own", "predicting")

# What transformers and vLLM put behind the name of an architecture; GGUF files have the bare name.
_SUFFIX = re.compile(r"(Unified)?(For[A-Z]\w*|(Text)?Config|(Text)?Model)$")


class HeadSetError(Exception):
    """A head set that cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Head:
    """One query head. `score`: share of aligned target tokens whose argmax over the source is the aligned word."""

    layer: int
    head: int
    score: float | None = None


@dataclass(frozen=True, slots=True)
class HeadSet:
    """Calibrated heads of one model and direction, best first.

    `query_row`: which row belongs to a token: the query at its `own` position, or at the position `predicting` it.
    `direction`: "en-de", or "shared" for the kernel common to all measured directions.
    """

    model: str
    architecture: str
    layers: int
    query_heads: int
    direction: str
    query_row: str
    prompt_layout: str
    heads: tuple[Head, ...]
    pairs: int = 0
    stability: str = ""
    data: str = ""
    licence: str = ""
    schema_version: int = SCHEMA_VERSION

    def top(self, k: int) -> tuple[Head, ...]:
        """The k best heads."""
        return self.heads[:k]

    def check_model(self, name: str, layers: int, query_heads: int, architecture: str = "") -> None:
        """Raises `HeadSetError` when the set does not fit a model of this geometry and architecture ("": unknown)."""
        if (layers, query_heads) != (self.layers, self.query_heads):
            raise HeadSetError(
                f"Head set {self.model}/{self.direction} is for {self.layers} layers of {self.query_heads} heads, "
                f"but {name} has {layers} of {query_heads}."
            )
        if architecture and self.architecture and _family(architecture) != _family(self.architecture):
            raise HeadSetError(
                f"Head set {self.model}/{self.direction} is for the architecture {self.architecture}, but {name} is "
                f"{architecture}: name a head set of this model, or find its heads with `surtitle calibrate`."
            )

    def doubt(self, model: str) -> str:
        """A sentence when the set is not named after `model` (a name or a path), else "".

        Geometry and architecture cannot tell models of one family apart (Qwen3-0.6B and Qwen3-1.7B), and a model's
        name proves nothing: so this is said and not refused.
        """
        if _letters(self.model) in _letters(model):
            return ""
        return (
            f"The heads were found in {self.model} and are used with {Path(model).name}: "
            "if that is another model, find its own with `surtitle calibrate`."
        )


def head_set_from_json(data: Any, where: str) -> HeadSet:
    """Validate parsed JSON. Raises `HeadSetError` naming the first thing that is wrong."""
    if not isinstance(data, dict):
        raise HeadSetError(f"Head set {where} is not a JSON object.")
    if data.get("schema_version") != SCHEMA_VERSION:
        raise HeadSetError(
            f"Head set {where} has schema version {data.get('schema_version')}, expected {SCHEMA_VERSION}."
        )
    required = {
        "model",
        "architecture",
        "layers",
        "query_heads",
        "direction",
        "query_row",
        "prompt_layout",
        "heads",
    }
    if absent := sorted(required - data.keys()):
        raise HeadSetError(f"Head set {where} lacks '{absent[0]}'.")
    if unknown := sorted(data.keys() - set(HeadSet.__dataclass_fields__)):
        raise HeadSetError(f"Head set {where} has the unknown key '{unknown[0]}'.")
    if data["query_row"] not in QUERY_ROWS:
        raise HeadSetError(f"Head set {where}: query_row must be one of {', '.join(QUERY_ROWS)}.")
    for name in ("layers", "query_heads"):
        if not _whole(data[name]):
            raise HeadSetError(f"Head set {where}: '{name}' must be a whole number.")
    try:
        heads = tuple(Head(h["layer"], h["head"], h.get("score")) for h in data["heads"])
    except (TypeError, KeyError, AttributeError) as error:
        raise HeadSetError(f"Head set {where}: every head needs a whole 'layer' and 'head'.") from error
    if not all(_whole(h.layer) and _whole(h.head) for h in heads):
        raise HeadSetError(f"Head set {where}: every head needs a whole 'layer' and 'head'.")
    if not heads:
        raise HeadSetError(f"Head set {where} names no heads.")
    if len({(h.layer, h.head) for h in heads}) != len(heads):
        raise HeadSetError(f"Head set {where} names a head twice.")
    for h in heads:
        if not (0 <= h.layer < data["layers"] and 0 <= h.head < data["query_heads"]):
            raise HeadSetError(
                f"Head set {where}: head ({h.layer}, {h.head}) lies outside {data['layers']} layers "
                f"of {data['query_heads']} heads."
            )
    return HeadSet(**{**data, "heads": heads})


def _family(architecture: str) -> str:
    """One name for `gemma3`, `Gemma3ForCausalLM` and `Gemma3ForConditionalGeneration`."""
    return _letters(_SUFFIX.sub("", architecture))


def _letters(name: str) -> str:
    """A name without case, dashes and dots."""
    return "".join(filter(str.isalnum, name)).casefold()


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def head_set_to_json(heads: HeadSet) -> dict[str, Any]:
    """The JSON object of a head set, keys in the order of the class."""
    data = {name: getattr(heads, name) for name in HeadSet.__dataclass_fields__}
    rows = [{"layer": h.layer, "head": h.head, "score": h.score} for h in heads.heads]
    return {"schema_version": data.pop("schema_version"), **data, "heads": rows}


def load_head_set(folder: Path, direction: str) -> tuple[HeadSet, str | None]:
    """The head set of a direction, or the model's shared kernel with a sentence that says so.

    Raises `HeadSetError` when the folder holds neither.
    """
    own, shared = folder / f"{direction}.json", folder / "shared.json"
    path = own if own.is_file() else shared
    if not path.is_file():
        raise HeadSetError(
            f"There are no heads for {folder.name} {direction}: neither {own.name} nor {shared.name} exists."
        )
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise HeadSetError(f"Head set {path} cannot be read: {reason}.") from error
    note = None if path is own else f"No head set for {direction}: using the shared heads of {folder.name}."
    return head_set_from_json(data, str(path)), note
