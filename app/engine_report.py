"""What there is to know about the engine, without Qt: how loading goes on, health, lag; the text for a bug report."""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from app.controller import Controller
from app.files import log_folder
from app.lag import LagWatch
from app.observe import Notifier
from app.status import Phase, Status
from engine.messages import Activity, Caption, Event, Health, Loading, Ready

GIB = 2**30
SHARES = {"recogniser": (0.0, 0.5), "translator": (0.5, 1.0)}  # of the whole progress, as the engine reports it
SOONEST_S = 1.0  # before this, and below this share, an estimate of what remains is a guess
LEAST = 0.05
LOG_BYTES = 60_000  # of each log that a viewer reads
LIBRARIES = ("PySide6-Essentials", "qasync", "faster-whisper", "llama-cpp-python", "transformers", "torch", "vllm")


@dataclass(frozen=True, slots=True)
class Stage:
    """One model being loaded: `share` of it in [0, 1], and what is being done."""

    name: str
    share: float
    text: str


class EngineReport:
    """Follows a controller from now on. `changed`: something here is different."""

    def __init__(self, controller: Controller, clock: Callable[[], float] = time.monotonic) -> None:
        self.changed: Notifier[None] = Notifier()
        self.lag = LagWatch()
        self.health: dict[str, Health] = {}
        self.info: dict[str, object] = {}
        self.progress = 0.0
        self._stages: dict[str, Stage] = {}
        self._controller, self._clock = controller, clock
        self._began_s = clock()
        self._phase = controller.status.phase
        self._leave = [
            controller.engine.events.subscribe(self._on_event),
            controller.changed.subscribe(self._on_status),
        ]

    def detach(self) -> None:
        """Stop following."""
        for leave in self._leave:
            leave()

    @property
    def status(self) -> Status:
        """What the program is doing."""
        return self._controller.status

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The models of the last loading, in their order."""
        return tuple(self._stages.values())

    @property
    def remaining_s(self) -> float | None:
        """How long loading will still take at the pace it has had; None when nobody can tell."""
        passed_s = self._clock() - self._began_s
        if self.status.phase is not Phase.LOADING or passed_s < SOONEST_S or self.progress < LEAST:
            return None
        return passed_s * (1 - self.progress) / self.progress

    @property
    def degraded(self) -> list[Health]:
        """What is not as it should be."""
        return [health for health in self.health.values() if health.state != "ok"]

    def _on_status(self, status: Status) -> None:
        before, self._phase = self._phase, status.phase
        if status.phase is Phase.LOADING and before is not Phase.LOADING:
            self._began_s, self.progress = self._clock(), 0.0
            self._stages.clear()
            self.health.clear()
            self.lag.reset()
        elif status.phase is Phase.LISTENING and before is not Phase.LISTENING:
            self.health.clear()  # each session starts with its preset's own policy
            self.lag.reset()
        self.changed.emit(None)

    def _on_event(self, event: Event) -> None:
        match event:
            case Loading():
                self._load(event)
            case Ready():
                self.info, self.progress = dict(event.info), 1.0
                self._stages = {name: Stage(name, 1.0, "") for name in self._stages}
            case Health():
                self.health[event.component] = event
            case Activity():
                self.lag.heard(self._clock(), event.lag_s, event.audio_s - event.processed_s)
            case Caption():
                self.lag.translated(event.stages)
                return
            case _:
                return
        self.changed.emit(None)

    def _load(self, event: Loading) -> None:
        self.progress = min(1.0, max(0.0, event.fraction))
        first, last = SHARES.get(event.stage, (0.0, 1.0))
        for name in self._stages:
            self._stages[name] = Stage(name, 1.0, "")
        share = min(1.0, max(0.0, (self.progress - first) / (last - first)))
        self._stages[event.stage] = Stage(event.stage, share, event.text)


# ---------------------------------------------------------------- logs and diagnostics


def log_files() -> list[Path]:
    """The logs of app and engine that exist."""
    return [path for name in ("app", "engine") if (path := log_folder() / f"{name}.log").is_file()]


def tail(path: Path, limit: int = LOG_BYTES) -> str:
    """The end of a log, whole lines; one sentence when it cannot be read."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - limit))
            data = file.read(limit)
    except OSError as error:
        return f"{path} cannot be read ({error.strerror or error})."
    text = data.decode("utf-8", errors="replace")
    return text if size <= limit else text.partition("\n")[2]


def diagnostics(report: EngineReport) -> str:
    """Everything a bug report needs and nothing that was said: no subtitles, and the home folder as `~`."""
    status, judgement = report.status, report.lag.judge()
    memory = psutil.virtual_memory()
    lines = [
        f"Surtitle {_version('surtitle')}",
        f"Python {platform.python_version()}, {platform.platform()}, {sys.platform}",
        f"{os.cpu_count()} CPU cores, {memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB of memory free",
        ", ".join(f"{name} {_version(name)}" for name in LIBRARIES if _version(name) != "-"),
        f"display: {os.environ.get('XDG_SESSION_TYPE', '-')}, {os.environ.get('QT_QPA_PLATFORM', 'default')}",
        f"state: {status.phase.value}; {status.line}; notice: {status.notice or '-'}",
        f"lag: {judgement.lag_s:.1f} s, growing: {judgement.growing}, cause: {judgement.cause.value}, "
        f"backlog: {judgement.backlog_s:.1f} s, draft: {judgement.draft_ms:.0f} ms",
        *(f"loading: {stage.name} {stage.share:.0%} {stage.text}".rstrip() for stage in report.stages),
        *(f"{name}: {health.state}; {health.text} {health.counters or ''}" for name, health in report.health.items()),
        *(f"engine {name}: {value}" for name, value in report.info.items()),
    ]
    for path in log_files():
        lines += ["", f"--- {path.name}", tail(path, LOG_BYTES // 3).rstrip()]
    return "\n".join(lines).replace(str(Path.home()), "~") + "\n"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "-"
