"""Adapters: low-rank changes to the weights of one base file, with the languages and the prompt they were trained for.

A folder holds `adapter.toml`, `adapter.gguf` (llama.cpp) and `adapter.safetensors` (transformers), see
`resources/adapters/README.md`. Everything is checked before a model is loaded. No model library in here.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engine.models import sha256_of
from engine.mt.contract import TranslationError
from engine.mt.prompt import PROMPTS
from engine.presets import resources

GGUF, SAFETENSORS = "adapter.gguf", "adapter.safetensors"
_SHOWN = 12  # letters of a checksum in a sentence
_SHA256 = r"^[0-9a-f]{64}$"


class _Note(BaseModel):
    """`adapter.toml`; other keys are notes for people. `base` is the name of the file that it changes."""

    model_config = ConfigDict(frozen=True)

    name: str
    base: str
    base_sha256: str = Field(pattern=_SHA256)
    rank: int = Field(ge=1, le=1024)
    alpha: float = Field(gt=0, allow_inf_nan=False)
    layout: str
    source: str
    languages: tuple[str, ...] = Field(min_length=1)
    gguf_sha256: str = Field(pattern=_SHA256)
    safetensors_sha256: str = Field(pattern=_SHA256)


@dataclass(frozen=True, slots=True)
class Adapter:
    """One adapter. `scale` multiplies B·A; `pairs` are such as "en-de"; `prompt` is the preset value of its layout.

    `sha256`: what each of its files must have.
    """

    name: str
    folder: Path
    prompt: str
    rank: int
    alpha: float
    pairs: tuple[str, ...]
    base_file: str
    base_sha256: str
    sha256: dict[str, str]

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    def check_pair(self, source_lang: str, target_lang: str) -> None:
        """Raises `TranslationError` for languages it was not trained for."""
        if f"{source_lang}-{target_lang}" not in self.pairs:
            raise TranslationError(
                f"The adapter '{self.name}' does not translate {source_lang}-{target_lang}, only "
                f"{', '.join(self.pairs)}: choose one of them, or set translator.adapter to ''."
            )

    def check_base(self, path: Path, sha256: str) -> None:
        """Raises `TranslationError` when the weights at `path` are not those that it was trained on."""
        if sha256 != self.base_sha256:
            other = f"has {sha256[:_SHOWN]}…" if sha256 else "is no such file"
            raise TranslationError(
                f"The adapter '{self.name}' is for {self.base_file} with sha256 {self.base_sha256[:_SHOWN]}…, but "
                f"{path} {other}: choose those weights, or set translator.adapter to ''."
            )

    def file(self, name: str) -> Path:
        """The path of `GGUF` or `SAFETENSORS`, its content checked. Raises `TranslationError`."""
        path = self.folder / name
        expected = self.sha256[name]
        try:
            found = sha256_of(path)
        except OSError as error:
            raise TranslationError(
                f"The adapter file {path} cannot be read ({error.strerror or error}): reinstall the adapter "
                f"'{self.name}'."
            ) from error
        if found != expected:
            raise TranslationError(
                f"The adapter file {path} is damaged (sha256 {found[:_SHOWN]}…, expected {expected[:_SHOWN]}…): "
                f"reinstall the adapter '{self.name}'."
            )
        return path


def load_adapter(name: str) -> Adapter:
    """Read an adapter: a name in `resources/adapters`, or a folder. Its files are not looked at yet.

    Raises `TranslationError` when there is none of that name and when its description is not valid.
    """
    folder = _folder(name)
    path = folder / "adapter.toml"
    try:
        found = _Note.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise TranslationError(f"The adapter {path} cannot be read: {error.strerror or error}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TranslationError(f"The adapter {path} is not valid at '{where}': {first['msg']}.") from error
    except ValueError as error:
        raise TranslationError(f"The adapter {path} is not valid: {error}.") from error
    prompt = PROMPTS.get(found.layout)
    if prompt is None:
        raise TranslationError(
            f"The adapter {path} needs the prompt layout '{found.layout}', but this program has {', '.join(PROMPTS)}: "
            "update one of the two."
        )
    return Adapter(
        name=found.name,
        folder=folder,
        prompt=prompt,
        rank=found.rank,
        alpha=found.alpha,
        pairs=tuple(f"{found.source}-{language}" for language in found.languages),
        base_file=found.base,
        base_sha256=found.base_sha256,
        sha256={GGUF: found.gguf_sha256, SAFETENSORS: found.safetensors_sha256},
    )


def _folder(name: str) -> Path:
    shipped = resources() / "adapters"
    for folder in (shipped / name, Path(name).expanduser()):
        if (folder / "adapter.toml").is_file():
            return folder
    names = sorted(path.parent.name for path in shipped.glob("*/adapter.toml"))
    known = f", or one of {', '.join(names)}" if names else ""
    raise TranslationError(f"There is no adapter '{name}': give a folder with an adapter.toml in it{known}.")
