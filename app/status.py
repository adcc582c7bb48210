"""What the program is doing, as one small value that window and terminal both show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BEHIND_S = 3.0  # from here on the lag is said instead of "listening"


class Phase(Enum):
    """Where the program stands."""

    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    LISTENING = "listening"
    STOPPING = "stopping"
    SOURCE_LOST = "source lost"
    ENGINE_STOPPED = "engine stopped"
    FAILED = "failed"

    @property
    def running(self) -> bool:
        """A session is open."""
        return self in (Phase.LISTENING, Phase.STOPPING)


@dataclass(frozen=True, slots=True)
class Status:
    """`text`: the loading stage, or one sentence on what went wrong. `progress` in [0, 1] while loading.

    `lag_s`: how far the newest stable text is behind the newest speech. `audio_s`: audio received in this session.
    `wanted`: a session runs or will begin as soon as the models are there. `quality`: a label that goes wherever
    translations are shown ("demo quality"), or "". `notices`: sentences on what is not well but does not stop the
    session. `source`: the microphone or file in use; `lost`: it delivers nothing and is looked for;
    `overflows`: how often the sound system lost audio in this session.
    """

    phase: Phase = Phase.OFF
    text: str = ""
    progress: float | None = None
    speech: bool = False
    lag_s: float = 0.0
    audio_s: float = 0.0
    wanted: bool = False
    quality: str = ""
    notices: tuple[str, ...] = ()
    source: str = ""
    lost: bool = False
    overflows: int = 0

    @property
    def notice(self) -> str:
        """All notices one behind the other, or ""."""
        return " ".join(self.notices)

    @property
    def can_restart(self) -> bool:
        """The engine is gone and `Controller.restart` would bring it back."""
        return self.phase is Phase.ENGINE_STOPPED

    @property
    def line(self) -> str:
        """The state line: a few words."""
        match self.phase:
            case Phase.OFF:
                return "Off"
            case Phase.LOADING:
                percent = "" if self.progress is None else f" {self.progress:.0%}"
                return f"Loading{percent}: {self.text}" if self.text else f"Loading{percent}"
            case Phase.READY:
                return self.text or "Ready"
            case Phase.LISTENING if self.lost:
                return "No microphone"
            case Phase.LISTENING if self.lag_s >= BEHIND_S:
                return f"{self.lag_s:.1f} s behind"
            case Phase.LISTENING:
                return "Speech" if self.speech else "Listening"
            case Phase.STOPPING:
                return "Finishing the last words"
            case Phase.SOURCE_LOST:
                return self.text or "The microphone was lost"
            case Phase.ENGINE_STOPPED:
                return self.text or "The engine stopped"
            case Phase.FAILED:
                return self.text
