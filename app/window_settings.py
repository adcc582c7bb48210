"""What the window remembers, without Qt: its look, its place, its shortcuts, the browser page."""

from __future__ import annotations

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from app.mended import Mended

Theme = Literal["system", "dark", "light"]
Mark = Literal["dots", "dashes", "wave", "line"]
THEMES: tuple[str, ...] = get_args(Theme)
MARKS: tuple[str, ...] = get_args(Mark)
COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
NAME_LENGTH = 200  # characters of a font's, screen's or key's name
LINGER_S = 6.0  # the last lines stay at least so long


def _colour(value: str) -> str:
    if value and not COLOUR.fullmatch(value):
        raise ValueError("a colour is #rrggbb")
    return value.lower()


def _name(value: str) -> str:
    return " ".join(value.split())[:NAME_LENGTH]


Colour = Annotated[str, AfterValidator(_colour)]
Name = Annotated[str, AfterValidator(_name)]


class Geometry(BaseModel):
    """Place of the window in logical pixels: relative to the screen of that name, and its size."""

    model_config = ConfigDict(frozen=True)

    screen: str = ""
    x: int = 0
    y: int = 0
    width: int = Field(default=0, ge=0, le=32_000)
    height: int = Field(default=0, ge=0, le=32_000)


class PageSettings(BaseModel):
    """The page for OBS and browsers. `token` is made when the page is first switched on and stays its address."""

    model_config = ConfigDict(extra="allow")

    enabled: bool = False
    port: int = Field(default=8766, ge=1024, le=65_535)
    token: str = ""


class WindowSettings(Mended):
    """The `window` part of the settings. Colours are "#rrggbb", or "" for the theme's own. `opacity` of the background
    in [0, 1]; `language` is a code of the interface ("de"), or "" for the system's; `shortcuts` holds only what was
    changed: action → keys ("Ctrl+E", or "" for none). `mark`: what tells held text apart beside its colour.
    """

    theme: Theme = "system"
    language: Name = ""
    font: Name = ""
    font_pt: float = Field(default=24.0, ge=8.0, le=144.0)
    bold: bool = False
    lines: int = Field(default=2, ge=1, le=6)
    stable: Colour = ""
    held: Colour = ""
    background: Colour = ""
    opacity: float = Field(default=0.85, ge=0.0, le=1.0)
    outline: Colour = ""
    outline_px: float = Field(default=0.0, ge=0.0, le=8.0)
    mark: Mark = "dots"
    reading_mode: bool = False
    source_line: bool = False
    smooth: bool = True
    fade: bool = True
    linger_s: float = Field(default=LINGER_S, ge=LINGER_S, le=600.0)
    on_top: bool = True
    geometry: Geometry | None = None
    shortcuts: dict[str, str] = Field(default_factory=dict)
    page: PageSettings = Field(default_factory=PageSettings)
