"""`surtitle benchmark session`: a whole session at real pace, and where its time and memory go.

The engine process is fed as the app feeds it, and tells spans of its work (`session_chain` says of which stages). With
`--terminal`, `--window` or `--fast` the whole program runs instead, as a person starts it, looked at from outside.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from engine.benchmarks import session_end, session_program
from engine.benchmarks.asr import ATTENTION_HELP, PLAIN_ATTENTION
from engine.benchmarks.gpu_memory import GpuMemory
from engine.benchmarks.mt_subject import BenchmarkError
from engine.benchmarks.options import key_and_value
from engine.benchmarks.processes import Sampler
from engine.benchmarks.session_play import BLOCK_S, EngineProcess, Record, play, read_recording
from engine.benchmarks.session_random import MADE_UP, RandomModels, stand_ins
from engine.benchmarks.session_report import loaded, machine_and_gpus, memory, progress, session, show, subject
from engine.files import write_atomically
from engine.messages import Configure, Event, Loading, Start
from engine.presets import PresetError, load_preset, resources

TELL_EVERY_S = 15.0
SAVE_EVERY_S = 30.0
BUSY_WITHIN_S = 60.0  # for the moment at which the engine is killed while it works
END_S = 15.0  # of `--within`, kept for the end
LOOK_ON_GPU_S = 5.0  # at processes, which map gigabytes there


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("file", nargs="?", type=Path, help="recording (default: the bundled one)")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--from", dest="source", default="en")
    parser.add_argument("--to", dest="target", default="de")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another value of the preset")
    parser.add_argument("--minutes", type=float, help="play the recording over and over for this long")
    parser.add_argument("--within", type=float, metavar="MINUTES", help="play less, so that all of it takes no longer")
    parser.add_argument("--random-weights", action="store_true", help="Qwen3-ASR and vLLM's translator without weights")
    parser.add_argument("--attention", choices=("own", "plain"), default="plain", help=ATTENTION_HELP)
    parser.add_argument("--kill", action="store_true", help="at the end kill the engine while it works")
    parser.add_argument("--terminal", action="store_true", help="the whole program in the terminal, from outside")
    parser.add_argument("--window", action="store_true", help="the whole program with its window (needs a display)")
    parser.add_argument("--fast", action="store_true", help="the whole program, as fast as the engine takes the audio")
    parser.add_argument("--json", type=Path, help="also write the figures here, anew after every stage")


def run(args: argparse.Namespace) -> int:
    """Run it and print its figures. Status 1 when the session failed, 2 for bad input."""
    try:
        if any(value is not None and not 0 < value < 1e5 for value in (args.minutes, args.within)):
            raise BenchmarkError("Minutes must be greater than 0.")
        if args.terminal or args.window or args.fast:
            if args.kill or args.random_weights or args.within or args.set:
                raise BenchmarkError(
                    "--kill, --random-weights, --within and --set measure the engine: leave out --terminal, --window "
                    "and --fast."
                )
            return session_program.run(args)
        with tempfile.TemporaryDirectory() as folder:
            return _Measurement(args, Path(folder)).run()
    except (BenchmarkError, PresetError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2


class _Measurement:
    """One run. Raises `BenchmarkError` and `PresetError` for what cannot be run."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._args, self._began_s = args, time.monotonic()
        overrides = dict(key_and_value(text) for text in args.set)
        preset = load_preset(args.preset, overrides)
        preset.check_pair(args.source, args.target)
        self._recording = read_recording(args.file or min((resources() / "recordings").glob("*.flac")))
        self._seconds = 60 * args.minutes if args.minutes else self._recording.seconds
        self._gpu = GpuMemory.open()
        self._random: RandomModels | None = None
        self._figures = {"complete": False, **subject(preset, args), "machine": machine_and_gpus(self._gpu)}
        if args.random_weights:
            chosen = stand_ins(preset, (args.source, args.target), folder, self._gpu is not None)
            overrides |= chosen.overrides
            changed = load_preset(args.preset, overrides)
            self._figures |= {**subject(changed, args), "models": chosen.names, "made_up": MADE_UP}
            plain = PLAIN_ATTENTION if self._gpu and args.attention == "plain" else {}
            self._random = RandomModels("cuda" if self._gpu else "cpu", plain)
        self._configure = Configure(args.preset, args.source, args.target, overrides=overrides)
        self._told = ""
        self._save()

    def run(self) -> int:
        """The status. What was measured before a failure is kept."""
        engine = EngineProcess(self._random, on_event=self._tell)
        sampler: Sampler | None = None
        try:
            sampler = Sampler(engine.pid, LOOK_ON_GPU_S if self._gpu else None)
            self._load(engine, sampler)
            self._play(engine, sampler)
            return self._verdict()
        except BenchmarkError as error:
            self._figures["failed"] = str(error)
            if engine.record.ready is None:
                raise
            print(error, file=sys.stderr)
            return 1
        finally:
            engine.close()
            if sampler is not None:
                sampler.stop()
            if self._gpu:
                self._gpu.close()
            self._save()

    def _load(self, engine: EngineProcess, sampler: Sampler) -> None:
        engine.send(self._configure)
        engine.wait(lambda record: record.ready is not None or bool(record.errors))
        if engine.record.ready is None:
            raise BenchmarkError(engine.record.errors[0])
        self._figures |= loaded(engine.record, engine.began_s)
        self._figures["memory"] = memory(sampler, self._gpu)
        if self._gpu:
            self._figures["gpu_at_ready_gib"] = self._figures["memory"]["gpu"]["now_gib"]
        self._save()

    def _play(self, engine: EngineProcess, sampler: Sampler) -> None:
        if self._args.within:
            left_s = 60 * self._args.within - (time.monotonic() - self._began_s) - END_S
            if left_s < self._recording.seconds and left_s < self._seconds:
                raise BenchmarkError(
                    f"Loading has left {max(0.0, left_s):.0f} s of the {self._args.within:g} minutes: give more with "
                    "--within."
                )
            self._seconds = min(self._seconds, left_s)
        self._say(f"{self._seconds / 60:.1f} minutes of audio at real pace")
        engine.send(Start("benchmark"))
        audio, tell_s, save_s = play(engine, self._recording), TELL_EVERY_S, SAVE_EVERY_S
        for sent_s in audio:
            if sent_s >= tell_s:
                tell_s += TELL_EVERY_S
                self._say(progress(engine.record, sent_s))
            if sent_s >= save_s:
                save_s += SAVE_EVERY_S
                self._note(engine, sampler, sent_s)
            if sent_s >= self._seconds:
                break
        if self._args.kill:
            self._wait_for_work(engine, audio)
            end = session_end.kill(engine, self._gpu)
        else:
            end = session_end.stop(engine, self._gpu)
        self._note(engine, sampler, len(engine.record.sent) * BLOCK_S)
        self._figures |= {"end": end, "complete": True}

    def _wait_for_work(self, engine: EngineProcess, audio: Iterator[float]) -> None:
        """Go on playing until the translator has decided something and is at work again.

        Raises `BenchmarkError` when it never is.
        """
        for sent_s in audio:
            if engine.wait(_at_work, BLOCK_S * 0.8):
                return
            if sent_s > self._seconds + BUSY_WITHIN_S:
                raise BenchmarkError("The translator had nothing to do for a minute: is there speech in the recording?")

    def _note(self, engine: EngineProcess, sampler: Sampler, sent_s: float) -> None:
        """The figures of the session so far, saved."""
        with engine.changed:
            self._figures |= session(engine.record, sent_s, self._args.target)
        self._figures["memory"] = memory(sampler, self._gpu)
        self._save()

    def _verdict(self) -> int:
        show(self._figures)
        end = self._figures["end"]
        if end["processes_gone_s"] is None or (self._gpu and end["gpu_free_s"] is None):
            print("What the engine had started did not end, or GPU memory was not given back.", file=sys.stderr)
            return 1
        return 0

    def _tell(self, event: Event) -> None:
        """Loading, a line for each thing that is loaded."""
        if isinstance(event, Loading) and event.text != self._told:
            self._told = event.text
            self._say(event.text)

    def _say(self, text: str) -> None:
        print(f"[{time.monotonic() - self._began_s:6.1f} s] {text}", flush=True)

    def _save(self) -> None:
        if not self._args.json:
            return
        try:
            write_atomically(self._args.json, json.dumps(self._figures, indent=1, ensure_ascii=False) + "\n")
        except OSError as error:
            raise BenchmarkError(f"'{self._args.json}' cannot be written: {error.strerror or error}.") from error


def _at_work(record: Record) -> bool:
    return "translation" in record.running and any("decide_ms" in heard.caption.stages for heard in record.captions)
