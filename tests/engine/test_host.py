"""What the engine does with each command, in every state, on models by script."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from engine import host as host_module
from engine.alignatt.policy import Policy
from engine.asr.contract import Recogniser
from engine.host import Host, session_info
from engine.messages import (
    PROBE_FAILED,
    Audio,
    Caption,
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
    Shutdown,
    Start,
    Stop,
    Stopped,
)
from engine.models import ModelError
from engine.mt.contract import CaptureHealth, TranslationError, Translator
from engine.mt.session import LocalTranslationSession
from engine.presets import Preset
from tests.engine.mt.scripted import ScriptedTranslator
from tests.engine.sessions import ScriptedRecogniser, Voice

CONFIGURE = Configure("laptop", "en", "de")
SECOND = np.ones(16_384, np.float32).tobytes()


class Closing(ScriptedTranslator):
    """Counts how often it was closed; may refuse to."""

    closed = 0
    refuse = False

    def close(self) -> None:
        self.closed += 1
        if self.refuse:
            raise OSError("stuck")


class Engine:
    """A host whose models are made by functions that a test may replace."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said: list[Event] = []
        self.translators: list[Closing] = []
        self.make_recogniser: Callable[[], Recogniser] = lambda: ScriptedRecogniser("we go home now.")
        self.make_translator: Callable[[], Translator] = self._translator
        self.check_translator: Callable[[], None] = lambda: None
        monkeypatch.setattr(host_module, "create_recogniser", self._create_recogniser)
        monkeypatch.setattr(host_module, "create_translator", self._create_translator)
        monkeypatch.setattr(host_module, "check_translator", lambda *_: self.check_translator())
        monkeypatch.setattr("engine.audio.VoiceActivity", Voice)
        self.host = Host(self.said.append)

    def _translator(self) -> Translator:
        self.translators.append(Closing())
        return self.translators[-1]

    def _create_recogniser(
        self, preset: Preset, language: str, progress: Callable[[float, str], None], context: str
    ) -> Recogniser:
        progress(0.5, "half")
        made = self.make_recogniser()
        progress(1.0, "whole")
        return made

    def _create_translator(
        self, preset: Preset, source: str, target: str, progress: Callable[[float, str], None]
    ) -> Translator:
        progress(0.0, "begun")
        made = self.make_translator()
        progress(1.0, "whole")
        return made

    def do(self, *commands: Any) -> list[Event]:
        """What was said to some commands."""
        before = len(self.said)
        for command in commands:
            self.host.handle(command)
        return self.said[before:]

    def speak(self, seconds: int) -> None:
        for second in range(seconds):
            self.do(Audio(SECOND, 16_000, 1, second * 1.024))

    def finish(self) -> list[Event]:
        """Stop the session and wait for its end."""
        before = len(self.said)
        self.do(Stop())
        assert self.host._session is not None
        self.host._session.join(60)
        return self.said[before:]


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def codes(events: list[Event]) -> list[str]:
    return [event.code for event in events if isinstance(event, Error)]


def test_what_does_not_fit_is_said_before_anything_is_loaded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "gpus", lambda: (("L4", 22.5, 22.1),))
    events = engine.do(Configure("gemma_low_latency", "en", "de"))
    assert [event.message for event in events if isinstance(event, Error)] == [
        "gemma_low_latency needs 33 GiB of GPU memory, 22.1 GiB are free: qwen_low_latency fits."
    ]
    assert not [event for event in events if isinstance(event, Loading)]
    assert engine.translators == []


def test_a_preset_that_is_refused_leaves_what_is_loaded(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "gpus", lambda: ())
    engine.do(CONFIGURE)
    assert codes(engine.do(Configure("gemma_low_latency", "en", "de"))) == ["ModelError"]
    assert engine.translators[0].closed == 0
    assert codes(engine.do(Start("a"))) == []
    engine.finish()


def test_memory_of_what_is_loaded_counts_as_free(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "gpus", lambda: (("A100", 40.0, 6.0),))
    engine.do(CONFIGURE)
    (machine,) = engine.do(Probe())
    assert machine.gpus == (("A100", 40.0, 6.0),)
    engine.host._models.preset = host_module.load_preset("gemma_low_latency")  # type: ignore[union-attr]
    (machine,) = engine.do(Probe())
    assert machine.gpus == (("A100", 40.0, 39.0),)


def test_from_probe_to_stopped(engine: Engine) -> None:
    (machine,) = engine.do(Probe())
    assert isinstance(machine, Machine)
    assert machine.ram_gib > 0
    assert "silero-vad" in [row[0] for row in machine.models]
    *loading, ready = engine.do(CONFIGURE)
    assert [event.fraction for event in loading if isinstance(event, Loading)] == [0.25, 0.5, 0.5, 1.0]
    assert isinstance(ready, Ready)
    assert (ready.preset, ready.source_lang, ready.target_lang) == ("laptop", "en", "de")
    assert {"model", "head_set", "policy", "capture_mode", "versions", "load_s"} <= ready.info.keys()
    assert engine.do(Start("one")) == []
    engine.speak(3)
    said = engine.finish()
    assert isinstance(said[-1], Stopped)
    assert [event.stable for event in engine.said if isinstance(event, Caption) and event.final] == ["WE GO HOME NOW"]
    engine.host.close()
    assert engine.translators[0].closed == 1


def test_commands_at_the_wrong_time_are_refused_and_change_nothing(engine: Engine) -> None:
    assert codes(engine.do(Start("early"))) == ["not_ready"]
    assert codes(engine.do(Stop())) == ["no_session"]
    assert engine.do(Audio(SECOND, 16_000, 1, 0.0), Flush()) == []
    assert codes(engine.do(Download("pause"))) == ["no_download"]
    assert codes(engine.do(Shutdown())) == ["protocol"]  # the process takes it before the host
    engine.do(CONFIGURE, Start("one"))
    assert codes(engine.do(Start("two"))) == ["busy"]
    assert codes(engine.do(CONFIGURE)) == ["busy"]
    assert isinstance(engine.do(Probe())[0], Machine)
    assert isinstance(engine.finish()[-1], Stopped)
    assert engine.do(Start("two")) == []
    assert isinstance(engine.finish()[-1], Stopped)


def test_a_command_for_a_download_that_has_just_ended_does_not_fail_the_loading(engine: Engine) -> None:
    works = engine.make_recogniser

    def late() -> Recogniser:
        engine.host.control(Download("cancel"))
        return works()

    engine.make_recogniser = late
    said = engine.do(CONFIGURE)
    assert codes(said) == []
    assert isinstance(said[-1], Ready)


def test_a_session_that_cannot_begin_is_told_as_ended(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.do(Start("early"))[-1] == Stopped("early", 0.0, 0.0)
    engine.do(CONFIGURE, Start("one"))
    assert [type(event) for event in engine.do(Start("two"))] == [Error], "the first one goes on"
    engine.finish()

    def lacking(**_: Any) -> Any:
        raise ModelError("The weights of silero-vad are damaged: reinstall them.")

    monkeypatch.setattr(host_module, "SpeechGate", lacking)
    assert engine.do(Start("three")) == [
        Error("ModelError", "The weights of silero-vad are damaged: reinstall them."),
        Stopped("three", 0.0, 0.0),
    ]


def test_a_probe_that_fails_says_that_it_was_the_probe(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise PermissionError("no")

    monkeypatch.setattr(host_module, "machine", broken)
    assert codes(engine.do(Probe())) == [PROBE_FAILED]


def test_another_preset_frees_the_models_before_it(engine: Engine) -> None:
    engine.do(CONFIGURE, CONFIGURE)
    assert [translator.closed for translator in engine.translators] == [1, 0]


def test_a_wrong_preset_leaves_the_loaded_one_in_place(engine: Engine) -> None:
    engine.do(CONFIGURE)
    for wrong in (
        Configure("nonsense", "en", "de"),
        Configure("laptop", "de", "en"),
        Configure("laptop", "en", "de", overrides={"policy.theta": 7}),
    ):
        assert codes(engine.do(wrong)) == ["PresetError"]
    assert engine.do(Start("one")) == []
    engine.finish()


def test_a_wrong_translator_is_said_before_anything_is_loaded_or_freed(engine: Engine) -> None:
    engine.do(CONFIGURE)

    def wrong() -> None:
        raise ModelError("There is no model at '/nowhere'.")

    engine.check_translator = wrong
    assert engine.do(CONFIGURE) == [Error("ModelError", "There is no model at '/nowhere'.")]
    assert engine.translators[0].closed == 0
    assert engine.do(Start("one")) == []
    engine.finish()


def test_a_server_that_does_not_answer_is_said_before_anything_is_loaded(engine: Engine) -> None:
    engine.make_recogniser = lambda: pytest.fail("nothing is loaded yet")
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"ws://127.0.0.1:{free.getsockname()[1]}"
    (said,) = engine.do(Configure("remote", "en", "de", overrides={"translator.url": url}))
    assert isinstance(said, Error)
    assert said.message == f"The MT server {url} cannot be reached (nothing listens there)."


@pytest.mark.parametrize(
    ("fault", "code", "sentence"),
    [
        (ModelError("The weights are damaged: reinstall them."), "ModelError", "The weights are damaged: reinstall"),
        (TranslationError("The model does not fit."), "TranslationError", "The model does not fit."),
        (MemoryError(), "MemoryError", "There is not enough memory for these models."),
        (ZeroDivisionError(), "engine", "The engine could not do this (ZeroDivisionError): see the log."),
    ],
)
@pytest.mark.parametrize("which", ["make_recogniser", "make_translator"])
def test_a_load_that_fails_is_one_error_and_can_be_tried_again(
    engine: Engine, which: str, fault: Exception, code: str, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    """What is said to the app in a sentence is not said by the log as well, where that is on the terminal."""
    works = getattr(engine, which)

    def fails() -> Any:
        raise fault

    setattr(engine, which, fails)
    with caplog.at_level(logging.DEBUG, "surtitle"):
        errors = [event for event in engine.do(CONFIGURE) if isinstance(event, Error)]
    foreseen = isinstance(fault, ModelError | TranslationError)
    assert [row.levelno >= logging.WARNING for row in caplog.records if row.exc_info] == [not foreseen]
    assert [(error.code, error.fatal) for error in errors] == [(code, False)]
    assert errors[0].message.startswith(sentence)
    assert codes(engine.do(Start("one"))) == ["not_ready"]
    setattr(engine, which, works)
    assert isinstance(engine.do(CONFIGURE)[-1], Ready)


def test_a_model_that_cannot_be_freed_does_not_stand_in_the_way(engine: Engine) -> None:
    engine.do(CONFIGURE)
    engine.translators[0].refuse = True
    assert codes(engine.do(CONFIGURE)) == ["engine"]
    assert isinstance(engine.do(CONFIGURE)[-1], Ready)


def test_closing_finalises_a_running_session(engine: Engine) -> None:
    engine.do(CONFIGURE, Start("one"))
    engine.speak(3)
    engine.host.close()
    assert isinstance(engine.said[-1], Stopped)
    assert [event.stable for event in engine.said if isinstance(event, Caption) and event.final] == ["WE GO HOME NOW"]


def test_rows_that_failed_their_test_are_not_relied_on(engine: Engine) -> None:
    engine.do(CONFIGURE)
    engine.translators[0].health.self_test = "failed"
    (health,) = [event for event in engine.do(Start("one")) if isinstance(event, Health)]
    assert (health.state, "local_agreement" in health.text) == ("fallback_policy", True)
    engine.finish()


def test_a_mode_that_is_not_the_one_asked_for_is_said(engine: Engine) -> None:
    engine.do(CONFIGURE)
    health = engine.translators[0].health
    health.mode, health.self_test, health.reason = "eager", "passed", "FULL: rows differ by 0.2"
    (said,) = [event for event in engine.do(Start("one")) if isinstance(event, Health)]
    assert said.state == "safe_mode"
    assert said.text.endswith("'eager', since a better one failed: FULL: rows differ by 0.2.")
    engine.finish()


def test_a_translator_that_stands_in_is_said(engine: Engine) -> None:
    engine.do(CONFIGURE)
    assert engine.host._models is not None
    assert session_info(engine.host._models)["seam"] == "cb_eval"
    health = engine.translators[-1].health
    health.mode, health.stand_in = "hf_qk_fast", "llama.cpp is not here: torch stands in."
    (said,) = [event for event in engine.do(Start("one")) if isinstance(event, Health)]
    assert (said.component, said.state, said.text) == ("library", "stand_in", health.stand_in)
    assert session_info(engine.host._models)["seam"] == "hf_qk_fast"
    engine.finish()


class Server:
    """In place of `RemoteServer`. `tell`: what the last session was given to tell its health with."""

    self_test = "passed"
    tell: Callable[[str, str], None]

    def __init__(self, *_: object) -> None:
        self.health, self.policy = CaptureHealth("FULL", self.self_test), dict[str, Any]()

    def session(self, context: str, on_health: Callable[[str, str], None]) -> LocalTranslationSession:
        Server.tell = staticmethod(on_health)
        return LocalTranslationSession(ScriptedTranslator(), Policy(), "one", "en", "de")

    def close(self) -> None:
        pass


@pytest.mark.parametrize("self_test", ["passed", "failed"])
def test_a_server_whose_rows_failed_their_test_is_said(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, self_test: str
) -> None:
    monkeypatch.setattr(Server, "self_test", self_test)
    monkeypatch.setattr(host_module, "RemoteServer", Server)
    engine.do(Configure("remote", "en", "de"))
    said = [(event.component, event.state) for event in engine.do(Start("one")) if isinstance(event, Health)]
    assert said == ([("capture", "fallback_policy")] if self_test == "failed" else [])
    engine.finish()


def test_a_server_that_is_back_does_not_take_back_that_its_capture_is_another(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "RemoteServer", Server)
    engine.do(Configure("remote", "en", "de"), Start("one"))
    for state in ("remote_offline", "capture_changed", "ok"):
        Server.tell(state, f"{state}.")
    said = {event.component: event.state for event in engine.said if isinstance(event, Health)}
    assert said == {"translator": "ok", "capture": "capture_changed"}
    engine.finish()


def test_heads_that_are_not_those_of_the_direction_are_said(engine: Engine) -> None:
    engine.do(CONFIGURE)
    engine.translators[0].health.heads_note = "No head set for en-fr: using the shared heads of gemma-3-270m."
    (said,) = [event for event in engine.do(Start("one")) if isinstance(event, Health)]
    assert (said.component, said.state, said.text) == ("heads", "note", engine.translators[0].health.heads_note)
    engine.finish()


def test_the_log_learns_what_is_loaded(engine: Engine) -> None:
    engine.do(CONFIGURE)
    assert engine.host._models is not None
    info = session_info(engine.host._models)
    assert info["recogniser"] == "whisper-tiny.en"
    assert info["policy"]["name"] == "alignatt"
    assert info["versions"]["surtitle"]
