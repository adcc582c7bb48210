"""What the engine does with each command: load a preset's models, run one session at a time."""

from __future__ import annotations

import logging
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from engine import __version__, fitting
from engine.alignatt.heads import HeadSetError
from engine.alignatt.units import separator
from engine.asr.contract import Recogniser
from engine.asr.factory import create_recogniser
from engine.audio import SpeechGate
from engine.download_control import DownloadControl, controlled_by
from engine.gpus import given_back, gpus
from engine.messages import (
    PROBE_FAILED,
    Audio,
    Command,
    Configure,
    Download,
    Error,
    Event,
    Flush,
    Health,
    Loading,
    Machine,
    Probe,
    Ready,
    Start,
    Stop,
    Stopped,
)
from engine.models import ModelError, describe, describe_hub
from engine.mt.contract import TranslationError, TranslationSession, Translator
from engine.mt.factory import check_translator, create_translator
from engine.mt.remote import CAPTURE_CHANGED, RemoteServer
from engine.mt.session import LocalTranslationSession
from engine.presets import Preset, PresetError, load_preset
from engine.session import SpeakerSession

logger = logging.getLogger("surtitle.engine")

Emit = Callable[[Event], None]
Progress = Callable[[float, str], None]
LIBRARIES = (
    "faster-whisper",
    "ctranslate2",
    "onnxruntime",
    "llama-cpp-python",
    "transformers",
    "torch",
    "vllm",
)
SESSION_END_S = 60.0


@dataclass(slots=True)
class Models:
    """What a preset has loaded. The recogniser and the translator outlive sessions."""

    configured: Configure
    preset: Preset
    recogniser: Recogniser
    translator: Translator | RemoteServer


class Host:
    """State of the engine process. One thread calls `handle`; `control` and `leave` may be called beside it."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._models: Models | None = None
        self._session: SpeakerSession | None = None
        self._downloads = DownloadControl(emit)
        self._loading = False

    def control(self, command: Download) -> None:
        """Pause, resume or cancel the download that loading waits for.

        One that comes too late, when loading goes on with what has arrived, is no error: an `Error` would say that the
        loading has failed.
        """
        if self._downloads.act(command.action):
            return
        if self._loading:
            logger.info("No download is running any more to %s.", command.action)
        else:
            self._emit(Error("no_download", "No download is running."))

    def leave(self) -> None:
        """The process will end: a download gives up and keeps what it has."""
        self._downloads.leave()

    def handle(self, command: Command) -> None:
        """Carry out one command. Whatever goes wrong is one `Error` event; the engine lives on.

        A session that could not begin is told as ended too, so that nobody waits for its end.
        """
        self._carry_out(command)
        if isinstance(command, Start) and not self._running:
            self._emit(Stopped(command.session_id, 0.0, 0.0))

    @property
    def _running(self) -> bool:
        return self._session is not None and self._session.running

    def _carry_out(self, command: Command) -> None:
        try:
            self._dispatch(command)
        except (PresetError, ModelError, TranslationError, HeadSetError) as error:
            logger.info("%s", error, exc_info=True)  # the app says it
            self._emit(Error(type(error).__name__, str(error)))
        except MemoryError:
            logger.exception("out of memory")
            self._emit(Error("MemoryError", "There is not enough memory for these models."))
        except Exception as error:
            logger.exception("%s failed", type(command).__name__)
            code = PROBE_FAILED if isinstance(command, Probe) else "engine"
            self._emit(Error(code, f"The engine could not do this ({type(error).__name__}): see the log."))

    def close(self) -> None:
        """Finalise what is running and free the models."""
        if self._session:
            self._session.push(Stop())
            self._session.join(SESSION_END_S)
        self._free()

    def _dispatch(self, command: Command) -> None:
        match command:
            case Configure():
                self._loading = True
                try:
                    with controlled_by(self._downloads):
                        self._configure(command)
                finally:
                    self._loading = False
            case Start():
                self._start(command)
            case Audio() | Flush() | Stop():
                self._forward(command)
            case Probe():
                self._emit(machine(self._gpus()))
            case Download():
                self.control(command)
            case _:
                self._emit(Error("protocol", f"The engine does not take {type(command).__name__} here."))

    def _forward(self, command: Audio | Flush | Stop) -> None:
        """Audio that arrives outside a session is dropped silently: blocks in flight at a stop are normal."""
        if self._session and self._session.running:
            self._session.push(command)
        elif isinstance(command, Stop):
            self._emit(Error("no_session", "There is no session to stop."))

    def _configure(self, command: Configure) -> None:
        if self._running:
            self._emit(Error("busy", "Stop the session before choosing another preset."))
            return
        started = time.monotonic()
        preset = load_preset(command.preset, command.overrides)
        preset.check_pair(command.source_lang, command.target_lang)
        self._check_translator(preset, command)
        fitting.check(preset, look=self._gpus)
        self._free()
        emit = self._emit
        recogniser = self._open_recogniser(
            preset,
            command,
            lambda fraction, text: emit(Loading("recogniser", fraction / 2, text)),
        )
        try:
            translator = self._open_translator(
                preset,
                command,
                lambda fraction, text: emit(Loading("translator", 0.5 + fraction / 2, text)),
            )
        except BaseException:
            recogniser.close()  # it may hold a GPU
            raise
        self._models = Models(command, preset, recogniser, translator)
        info = {**session_info(self._models), "load_s": round(time.monotonic() - started, 3)}
        logger.info("ready after %.1f s: %s", info["load_s"], info)
        emit(Ready(preset.id, command.source_lang, command.target_lang, info))

    def _gpus(self) -> fitting.Gpus:
        """The GPUs as they will be without the models that are loaded."""
        held_gib = self._models.preset.gpu_gib if self._models else 0.0
        return given_back(gpus(), held_gib)

    def _check_translator(self, preset: Preset, command: Configure) -> None:
        """What is wrong with the translator is said before the recogniser has loaded."""
        if preset.translator.kind == "remote":
            RemoteServer(preset, command.source_lang, command.target_lang)  # asks the server and holds nothing
        else:
            check_translator(preset, command.source_lang, command.target_lang)

    def _open_recogniser(self, preset: Preset, command: Configure, progress: Progress) -> Recogniser:
        return create_recogniser(preset, command.source_lang, progress, command.context)

    def _open_translator(self, preset: Preset, command: Configure, progress: Progress) -> Translator | RemoteServer:
        if preset.translator.kind != "remote":
            return create_translator(preset, command.source_lang, command.target_lang, progress)
        progress(0.0, "connecting to the MT server")
        return RemoteServer(preset, command.source_lang, command.target_lang)

    def _free(self) -> None:
        models, self._models = self._models, None
        if models:
            models.translator.close()
            models.recogniser.close()

    def _start(self, command: Start) -> None:
        if self._models is None:
            self._emit(Error("not_ready", "No preset is loaded yet: a session cannot start."))
            return
        if self._running:
            self._emit(Error("busy", "A session is running already."))
            return
        models = self._models
        models.recogniser.reset()
        configured = models.configured
        gate = SpeechGate(silence_ms=models.preset.recogniser.silence_ms)
        translation = self._translation(models, command.session_id)
        self._session = SpeakerSession(
            command.session_id,
            models.recogniser,
            translation,
            gate,
            self._emit,
            separator=separator(configured.source_lang),
            live=command.live,
        )

    def _tell_of_server(self, state: str, text: str) -> None:
        """A way of reading attention that has changed lasts, whether the server is lost and found again or not."""
        self._emit(Health("capture" if state == CAPTURE_CHANGED else "translator", state, text))

    def _translation(self, models: Models, session_id: str) -> TranslationSession:
        """A session of the translator that is loaded, or of the server that takes its place."""
        configured, health = models.configured, models.translator.health
        if health.heads_note:
            self._emit(Health("heads", "note", health.heads_note))
        if isinstance(models.translator, RemoteServer):
            if health.self_test == "failed":
                text = "The attention rows of the MT server failed their test: another policy releases its text."
                self._emit(Health("capture", "fallback_policy", text))
            return models.translator.session(configured.context, self._tell_of_server)
        policy = models.preset.policy
        if health.stand_in:
            self._emit(Health("library", "stand_in", health.stand_in))
        if health.self_test == "failed" and policy.name == "alignatt":
            policy = policy.fall_back()
            text = (
                f"The attention rows of this model failed their test: text is released by the policy '{policy.name}'."
            )
            self._emit(Health("translator", "fallback_policy", text))
        elif health.reason:
            text = f"Attention is read in the slower mode '{health.mode}', since a better one failed: {health.reason}."
            self._emit(Health("translator", "safe_mode", text))
        return LocalTranslationSession(
            models.translator,
            policy,
            session_id,
            configured.source_lang,
            configured.target_lang,
            context=configured.context,
            max_history=models.preset.translator.max_history_utterances,
            trace=configured.trace,
            on_unhealthy=lambda text: self._emit(Health("translator", "fallback_policy", text)),
            on_context_cut=lambda text: self._emit(Health("context", "context_cut", text)),
        )


def session_info(models: Models) -> dict[str, Any]:
    """What the session log's first line says of the engine."""
    preset = models.preset
    health = models.translator.health
    return {
        "model": getattr(models.translator, "model", preset.translator.model),
        "recogniser": preset.recogniser.model,
        "adapter": preset.translator.adapter,
        "seam": health.mode if health.stand_in else preset.translator.seam,
        "head_set": getattr(models.translator, "head_set_name", preset.translator.heads),
        "policy": getattr(models.translator, "policy", None) or asdict(preset.policy),
        "capture_mode": health.mode,
        "self_test": health.self_test,
        "quality": preset.quality,
        "versions": {"surtitle": __version__, "python": platform.python_version(), **library_versions()},
    }


def library_versions() -> dict[str, str]:
    """Versions of the model libraries that are installed."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine(found: fitting.Gpus | None = None) -> Machine:
    """What this machine has. `found`: its GPUs, where they are known already."""
    import psutil

    named = {model for preset in fitting.shipped() for model in preset.models}
    return Machine(
        python=sys.version.split()[0],
        cpu_count=os.cpu_count() or 1,
        ram_gib=round(psutil.virtual_memory().total / 2**30, 1),
        gpus=gpus() if found is None else found,
        models=tuple((m.name, m.present, str(m.where), m.bytes) for m in (*describe(), *describe_hub(named))),
        vllm=library_versions().get("vllm", ""),
    )
