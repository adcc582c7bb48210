"""`surtitle benchmark policies --pair en-de`: the curve of quality against latency of every release policy."""

from __future__ import annotations

import argparse
import contextlib
import json
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from engine import __version__
from engine.alignatt.heads import HeadSetError
from engine.benchmarks.curves.explain import explain, losses, worst_pair
from engine.benchmarks.curves.grid import points_of
from engine.benchmarks.curves.intervals import LEVEL, RESAMPLES, SEED, measure, resample_indices
from engine.benchmarks.curves.jobs import Task, run_tasks
from engine.benchmarks.curves.plot import draw
from engine.benchmarks.curves.points import Outcome, Point, Spoken, speak
from engine.benchmarks.curves.report import (
    Result,
    comparison_json,
    comparison_table,
    comparisons,
    curves_of,
    point_json,
    points_table,
)
from engine.benchmarks.curves.work import WorkFolder, default_folder
from engine.benchmarks.machine import machine
from engine.evaluation.continuations import RememberingTranslator, Savings, StoreError
from engine.evaluation.recognition import Timing
from engine.evaluation.replay import parse_overrides
from engine.evaluation.replayer import ReplayError
from engine.evaluation.talks import (
    Segment,
    TalkError,
    calibration_segments,
    held_out_folder,
    load_segments,
    thin_out,
)
from engine.files import write_atomically
from engine.models import ModelError
from engine.mt.adapter import load_adapter
from engine.mt.contract import TranslationError, Translator
from engine.mt.factory import create_translator
from engine.presets import Preset, PresetError, load_preset

_COLUMNS = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
_LIBRARIES = ("llama-cpp-python", "transformers", "torch", "vllm", "sacrebleu", "OmniSTEval")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("--pair", default="en-de", metavar="FROM-TO", help="language pair (en-de)")
    parser.add_argument("--talks", choices=("held-out", "calibration"), default="held-out")
    parser.add_argument("--folder", type=Path, help="folder with audio-segments.yaml and <language>.txt")
    parser.add_argument("--limit", type=int, metavar="N", help="only N segments, spread over the talks")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="preset value")
    parser.add_argument("--policy", action="append", metavar="NAME", help="only these policies")
    parser.add_argument(
        "--point",
        action="append",
        metavar="POLICY,KEY=VALUE,…",
        help="instead of the usual points: a policy with values",
    )
    parser.add_argument("--step-s", type=float, default=1.0, metavar="S", help="the recogniser reports every S seconds")
    parser.add_argument("--delay-s", type=float, default=0.0, metavar="S", help="from a word's end to its showing")
    parser.add_argument("--commit-s", type=float, default=1.0, metavar="S", help="from there to its commit")
    parser.add_argument("--misheard", type=float, default=0.08, metavar="RATE", help="share of words wrong at first")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes, each with the model (1)")
    parser.add_argument("--output", type=Path, metavar="JSON", help="result file")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the curves")
    parser.add_argument(
        "--explain", type=int, default=0, metavar="N", help="show the N segments where alignatt loses most"
    )
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="drafts and outcomes (default: user cache)")


def run(args: argparse.Namespace) -> int:
    """Run what is not finished yet and print the curves. Exit status 2 and one sentence for bad input."""
    try:
        return _Benchmark(args).run()
    except (PresetError, ModelError, HeadSetError, TranslationError, TalkError, ReplayError, StoreError) as error:
        print(error, file=sys.stderr)
        return 2


class _Benchmark:
    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        source, _, target = args.pair.partition("-")
        self._languages = (source, target)
        self._preset = load_preset(args.preset, parse_overrides(args.settings))
        self._preset.check_pair(source, target)
        self._timing = Timing(args.delay_s, args.commit_s, args.step_s)
        self._segments = _segments(args, self._languages)
        self._spoken = speak(self._segments, source, args.misheard)
        self._references = [segment.reference for segment in self._segments]
        usual = points_of(self._preset.policy)
        points = [_point(args, text) for text in args.point or ()] or usual
        self._points = _chosen(points, args.policy)
        self._results: list[Result] = []
        self._savings = Savings()
        self._head_set = ""
        self._started = time.monotonic()

    def run(self) -> int:
        open_translator = partial(_open, self._preset, self._languages)
        translator = open_translator()
        try:
            self._head_set = str(getattr(translator, "head_set_name", self._preset.translator.heads))
            identity = _identity(self._preset, translator, self._args.pair)
            work = WorkFolder(self._args.work or default_folder(self._args.pair), identity, self._timing)
            tasks = [task for at, spoken in enumerate(self._spoken) if (task := self._task(at, spoken, work)).points]
            with Progress(*_COLUMNS, console=Console(stderr=True)) as progress:
                bar = progress.add_task("segments", total=len(self._spoken), completed=len(self._spoken) - len(tasks))
                for finished in run_tasks(tasks, self._args.jobs, translator, open_translator):
                    for point, outcome in zip(finished.task.points, finished.outcomes, strict=True):
                        work.add(point, finished.task.spoken, outcome)
                    self._savings.add(finished.savings)
                    progress.advance(bar)
            self._measure(work)
            self._report(translator, work)
        finally:
            translator.close()
        return 0

    def _task(self, number: int, spoken: Spoken, work: WorkFolder) -> Task:
        """What is not known yet of a segment."""
        points = tuple(point for point in self._points if work.get(point, spoken) is None)
        return Task(number, spoken, points, work.drafts(spoken), self._languages, self._timing)

    def _measure(self, work: WorkFolder) -> None:
        indices = resample_indices(len(self._segments))
        for point in self._points:
            outcomes = [_known(work.get(point, spoken)) for spoken in self._spoken]
            self._results.append((measure(point, outcomes, self._references, indices), outcomes))

    def _result(self) -> dict[str, Any]:
        return {
            "command": shlex.join(["surtitle", "benchmark", "policies", *sys.argv[3:]]),
            "pair": self._args.pair,
            "talks": list(dict.fromkeys(segment.span.talk for segment in self._segments)),
            "held_out": self._args.talks == "held-out",
            "segments": len(self._segments),
            "speech_s": round(sum(segment.span.duration_s for segment in self._segments), 1),
            "preset": self._preset.id,
            "model": self._preset.translator.model,
            "adapter": self._preset.translator.adapter,
            "head_set": self._head_set,
            "recognition": {**asdict(self._timing), "misheard": self._args.misheard},
            "bootstrap": {"resamples": RESAMPLES, "seed": SEED, "level": LEVEL, "unit": "segment"},
            "points": [point_json(result, self._references, self._languages[1]) for result in self._results],
            "comparisons": [comparison_json(found) for found in comparisons(curves_of(self._results))],
            "run": {
                "wall_s": round(time.monotonic() - self._started, 1),
                "jobs": self._args.jobs,
                "draft_tokens": self._savings.tokens,
                "generated_tokens": self._savings.generated,
                "model_calls": self._savings.calls,
            },
            "machine": machine(),
            "versions": _versions(),
        }

    def _report(self, translator: Translator, work: WorkFolder) -> None:
        console, result = Console(), self._result()
        if self._args.output:
            text = json.dumps(result, indent=1, ensure_ascii=False)
            self._args.output.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._args.output, text + "\n")
        console.print(points_table(result["points"]))
        console.print(comparison_table(result["comparisons"]))
        curves = curves_of(self._results)
        if self._args.plot:
            self._args.plot.parent.mkdir(parents=True, exist_ok=True)
            draw(curves, f"{self._args.pair}, {result['model']}, {len(self._segments)} segments", self._args.plot)
        others = [point for name, points in curves.items() if name != "alignatt" for point in points]
        pair = worst_pair(curves.get("alignatt", []), others) if self._args.explain else None
        if pair is None:
            return
        outcomes = {measured.point.name: found for measured, found in self._results}
        mine, other = (outcomes[found.point.name] for found in pair)
        for loss in losses(mine, other, self._segments, self._args.explain):
            spoken = self._spoken[loss.segment]
            remembering = RememberingTranslator(translator, work.drafts(spoken))
            explain(console, loss, spoken, (pair[0].point, pair[1].point), remembering, self._languages, self._timing)


def _open(preset: Preset, languages: tuple[str, str]) -> Translator:
    """The preset's translator; in each process that runs segments."""
    return create_translator(preset, *languages, lambda _fraction, _text: None)


def _known(outcome: Outcome | None) -> Outcome:
    assert outcome is not None  # every task was run
    return outcome


def _point(args: argparse.Namespace, text: str) -> Point:
    """A point from "alignatt,theta=0.3,border_margin=1"; `every=2` asks at every second report."""
    name, *values = text.split(",")
    every = [value.removeprefix("every=") for value in values if value.startswith("every=")]
    if not all(value.isdecimal() and int(value) > 0 for value in every):
        raise ReplayError(f"'{text}': every must be a whole number above 0.")
    dials = [value for value in values if not value.startswith("every=")]
    settings = [*args.settings, f"policy.name={name}", *(f"policy.{dial}" for dial in dials)]
    return Point(
        load_preset(args.preset, parse_overrides(settings)).policy, " ".join(values), int((every or ["1"])[-1])
    )


def _chosen(points: list[Point], names: list[str] | None) -> list[Point]:
    known = list(dict.fromkeys(point.policy.name for point in points))
    for name in names or ():
        if name not in known:
            raise ReplayError(f"There is no policy '{name}'; policies are: {', '.join(known)}.")
    return [point for point in points if not names or point.policy.name in names]


def _segments(args: argparse.Namespace, languages: tuple[str, str]) -> list[Segment]:
    if args.jobs < 1:
        raise TalkError("--jobs must be 1 or more.")
    if args.limit is not None and args.limit < 2:
        raise TalkError("--limit must be 2 or more: an interval needs segments to draw from.")
    if args.talks == "held-out":
        return thin_out(load_segments(args.folder or held_out_folder(), *languages), args.limit)
    if args.folder is None:
        raise TalkError("The calibration talks are not shipped: name their folder with --folder.")
    return thin_out(calibration_segments(load_segments(args.folder, *languages)), args.limit)


def _versions() -> dict[str, str]:
    """Versions of what drafts and scores."""
    found = {"surtitle": __version__}
    for name in _LIBRARIES:
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _identity(preset: Preset, translator: Any, pair: str) -> str:
    """What drafts depend on besides their source: model, adapter, heads, prompt."""
    heads: Sequence[Any] = getattr(translator, "heads", ())
    layout = getattr(translator, "layout_id", preset.translator.prompt)
    wanted = preset.translator
    adapter = load_adapter(wanted.adapter).sha256 if wanted.adapter else {}
    model = [wanted.kind, wanted.seam, wanted.model, wanted.dtype, wanted.quantise, wanted.output_tokens]
    return json.dumps([pair, model, adapter, [list(head) for head in heads], layout])
