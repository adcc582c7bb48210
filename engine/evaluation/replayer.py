"""Lines of text replayed through a translation session: a whole session log, without audio."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from engine import __version__
from engine.evaluation.drive import Clock, drive
from engine.evaluation.recognition import Step, Timing, recognise, timed_words
from engine.files import why
from engine.mt.contract import Translator
from engine.mt.session import LocalTranslationSession
from engine.presets import Preset
from engine.schemas import CaptionLine, EndLine, LogLine, SessionLine, log_line_to_json

PAUSE_S = 0.5


class ReplayError(Exception):
    """A replay that cannot be run; the message is one sentence."""


class Replay:
    """A translation session over simulated recognition. One object, one run."""

    def __init__(
        self,
        translator: Translator,
        preset: Preset,
        source_lang: str,
        target_lang: str,
        timing: Timing,
        speech_rate: float,
        *,
        trace: bool = False,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._translator = translator
        self._preset = preset
        self._languages = (source_lang, target_lang)
        self._timing = timing
        self._speech_rate = speech_rate
        self._trace = trace
        self._clock = clock
        self._end_s = 0.0

    def run(self, lines: Sequence[Sequence[str]], on_caption: Callable[[CaptionLine], None]) -> list[LogLine]:
        """Translate all lines; the whole log. Raises `TranslationError`."""
        started = self._clock()
        session = LocalTranslationSession(
            self._translator,
            self._preset.policy,
            "replay",
            *self._languages,
            max_history=self._preset.translator.max_history_utterances,
            trace=self._trace,
        )
        log: list[LogLine] = []
        for caption in drive(session, self._steps(lines), self._languages[0], clock=self._clock):
            on_caption(caption)
            log.append(caption)
        session.close()
        wall_s = round(self._clock() - started, 3)
        return [self._session_line(), *log, EndLine(audio_s=round(self._end_s, 3), wall_s=wall_s)]

    def _steps(self, lines: Sequence[Sequence[str]]) -> Iterator[Step]:
        for utterance_id, units in enumerate(lines):
            start_s = self._end_s + (PAUSE_S if utterance_id else 0.0)
            words = timed_words(units, start_s, 60 / self._speech_rate * len(units))
            self._end_s = words[-1].end_s
            yield from recognise(utterance_id, words, self._timing)

    def _session_line(self) -> SessionLine:
        preset, health = self._preset, self._translator.health
        return SessionLine(
            preset=preset.id,
            source_lang=self._languages[0],
            target_lang=self._languages[1],
            model=preset.translator.model,
            head_set=str(getattr(self._translator, "head_set_name", preset.translator.heads)),
            policy=asdict(preset.policy),
            capture_mode=health.mode,
            versions={"surtitle": __version__, "python": platform.python_version()},
            info={
                "self_test": health.self_test,
                "seam": preset.translator.seam,
                "replay": {"speech_rate": self._speech_rate, **asdict(self._timing)},
            },
        )


def write_log(path: Path, log: Sequence[LogLine]) -> None:
    """Raises `ReplayError` when the file cannot be written."""
    try:
        path.write_text("".join(f"{log_line_to_json(line)}\n" for line in log), encoding="utf-8")
    except OSError as error:
        raise ReplayError(f"The session log {path} cannot be written: {why(error)}.") from error
