"""`surtitle benchmark recogniser`: what recognition costs, how late words are settled, and how many are wrong.

A recording goes through session audio, speech gate and recogniser as fast as they take it, in blocks as a microphone
gives them. CPU time is a property of the program even on a busy machine. The delay of a word is counted on the session
clock, from its end to the block that settled it: computing time comes on top, one decode at the most.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

from engine.asr.contract import Recogniser, Transcript, Utterance
from engine.asr.factory import create_recogniser
from engine.audio import GateEvent, SessionAudio, SpeechChunk, SpeechGate, SpeechPause
from engine.benchmarks.first_showings import Showing, first_showings
from engine.files import write_atomically
from engine.models import ModelError
from engine.presets import PresetError, load_preset, resources

BLOCK_S = 0.1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    recording = resources() / "recordings" / "two-voices.flac"
    parser.add_argument("file", type=Path, nargs="?", default=recording, help="a recording; its words in FILE.txt")
    parser.add_argument("--preset", default="laptop", help="whose recogniser is measured")
    parser.add_argument("--model", help="another model than the preset's: a name or a folder")
    parser.add_argument("--language", default="en", help="what is spoken")
    parser.add_argument("--chunk-ms", default="", help="other values than the preset's, such as 700,1000")
    parser.add_argument("--json", type=Path, help="also write the figures here")


def run(args: argparse.Namespace) -> int:
    """Run it. Status 2 for bad input."""
    try:
        if not args.file.is_file():
            raise ValueError(f"There is no file '{args.file}'.")
        samples, rate = soundfile.read(args.file, dtype="float32", always_2d=True)
        chunks = [int(value) for value in args.chunk_ms.split(",") if value]
        model = {"recogniser.model": args.model} if args.model else {}
        overrides = [{**model, "recogniser.chunk_ms": value} for value in chunks] or [model]
        found = {}
        for override in overrides:
            preset = load_preset(args.preset, override)
            stream = create_recogniser(preset, args.language, lambda fraction, text: None)
            heard = _Heard(SpeechGate(silence_ms=preset.recogniser.silence_ms), stream)
            figures = heard.play(samples, rate)
            figures |= _errors(args.file.with_suffix(".txt"), heard.text)
            name = f"{preset.recogniser.model}, chunks of {preset.recogniser.chunk_ms} ms"
            found[name] = figures
            print(name, "  ".join(f"{key} {value:.3f}" for key, value in figures.items()), flush=True)
    except (OSError, ValueError, RuntimeError, ModelError, PresetError) as error:
        print(f"{error}", file=sys.stderr)
        return 2
    if args.json:
        write_atomically(args.json, json.dumps(found, indent=2) + "\n")
    return 0


@dataclass
class _Heard:
    """One pass through gate and recogniser, and what is noted on the way. All in seconds."""

    gate: SpeechGate
    stream: Recogniser
    text: str = ""
    at_s: float = 0.0
    speech_s: float = 0.0
    delays_s: list[float] = field(default_factory=list)
    settled: dict[int, int] = field(default_factory=dict)
    states: dict[int, list[tuple[float, Utterance]]] = field(default_factory=dict)
    showings: list[Showing] = field(default_factory=list)
    utterances: int = 0

    def play(self, samples: NDArray[np.float32], rate: int) -> dict[str, float]:
        """Samples of shape [frames, channels]; the figures by name."""
        started, gate_cpu = time.process_time(), 0.0
        audio, size = SessionAudio(), round(BLOCK_S * rate)
        for first in range(0, len(samples) + size, size):  # the last piece is empty: the end
            before = time.process_time()
            events = self._let_through(audio, samples[first : first + size], rate, first / rate)
            gate_cpu += time.process_time() - before
            self.at_s = min(first + size, len(samples)) / rate
            for event in events:
                self._take(event)
        length_s = len(samples) / rate
        return {
            "CPU s per audio s": (time.process_time() - started) / length_s,
            "of it audio and gate": gate_cpu / length_s,
            "speech s": self.speech_s,
            "utterances": float(self.utterances),
            "delay mean s": statistics.fmean(self.delays_s or [0.0]),
            "delay p95 s": float(np.percentile(self.delays_s or [0.0], 95)),
            "shown after s": statistics.fmean([word.shown_s - word.end_s for word in self.showings] or [0.0]),
            "committed after that s": statistics.fmean([w.committed_s - w.shown_s for w in self.showings] or [0.0]),
            "wrong at first %": 100 * statistics.fmean([word.wrong for word in self.showings] or [0.0]),
            "words": float(len(self.showings)),
        }

    def _let_through(
        self, audio: SessionAudio, piece: NDArray[np.float32], rate: int, start_s: float
    ) -> list[GateEvent]:
        blocks = audio.convert(piece.tobytes(), rate, piece.shape[1], start_s) if len(piece) else audio.flush()
        events = [event for block in blocks for event in self.gate.push(block.samples, block.start_s)]
        return events if len(piece) else [*events, *self.gate.finish()]

    def _take(self, event: GateEvent) -> None:
        if isinstance(event, SpeechChunk):
            self.speech_s += event.end_s - event.start_s
            self._note(self.stream.push(event.samples, event.start_s))
        else:
            self._note(self.stream.pause() if isinstance(event, SpeechPause) else self.stream.finish())

    def _note(self, transcript: Transcript) -> None:
        for utterance in transcript.utterances:
            fresh = utterance.committed[self.settled.get(utterance.utterance_id, 0) :]
            self.settled[utterance.utterance_id] = len(utterance.committed)
            self.delays_s += [self.at_s - word.end_s for word in fresh]
            self.text += "".join(f" {word.text}" for word in fresh)
            self.utterances += utterance.final
            self.states.setdefault(utterance.utterance_id, []).append((self.at_s, utterance))
            if utterance.final:
                self.showings += first_showings(self.states.pop(utterance.utterance_id))


def _errors(transcript: Path, heard: str) -> dict[str, float]:
    """Word error rate in percent against the transcript beside the recording; nothing without one or without jiwer."""
    try:
        import jiwer
    except ImportError:
        return {}
    if not transcript.is_file():
        return {}
    said, found = (
        " ".join(re.sub(r"[^\w']|_", " ", text.lower().replace("mr.", "mister")).split())
        for text in (transcript.read_text(encoding="utf-8"), heard)
    )
    return {"word errors %": 100 * jiwer.wer(said, found)}
