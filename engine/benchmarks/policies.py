"""`surtitle benchmark policies --pair en-de`: the curve of quality against latency of every release policy."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
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
from engine.benchmarks.curves.plot import draw
from engine.benchmarks.curves.points import Point, run_point, speak
from engine.benchmarks.curves.report import (
    Result,
    comparison_json,
    comparison_table,
    comparisons,
    curves_of,
    point_json,
    points_table,
)
from engine.benchmarks.curves.work import FinishedPoints, code_fingerprint, default_folder, segments_fingerprint
from engine.evaluation.continuations import RememberingTranslator, StoreError
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
from engine.models import ModelError
from engine.mt.contract import TranslationError
from engine.mt.factory import create_translator
from engine.presets import Preset, PresetError, load_preset

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
    parser.add_argument("--step-s", type=float, default=1.0, metavar="S", help="the recogniser reports every S seconds")
    parser.add_argument("--delay-s", type=float, default=0.0, metavar="S", help="from a word's end to its showing")
    parser.add_argument("--commit-s", type=float, default=1.0, metavar="S", help="from there to its commit")
    parser.add_argument("--misheard", type=float, default=0.0, metavar="RATE", help="share of words wrong at first (0)")
    parser.add_argument("--output", type=Path, metavar="JSON", help="result file, written again after every point")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the curves")
    parser.add_argument(
        "--explain", type=int, default=0, metavar="N", help="show the N segments where alignatt loses most"
    )
    parser.add_argument("--work", type=Path, metavar="FOLDER", help="drafts and finished points (default: user cache)")


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
        self._indices = resample_indices(len(self._segments))
        self._points = _chosen(points_of(self._preset.policy), args.policy)
        self._results: dict[str, Result] = {}
        self._head_set = ""
        self._started = time.monotonic()

    def run(self) -> int:
        folder = self._args.work or default_folder(self._args.pair)
        inner = create_translator(self._preset, *self._languages, lambda _fraction, _text: None)
        identity = _identity(self._preset, inner, self._args.pair)
        self._head_set = str(getattr(inner, "head_set_name", self._preset.translator.heads))
        translator = RememberingTranslator(inner, folder / "drafts.jsonl", identity)
        try:
            finished = FinishedPoints(folder / "points.jsonl", self._setting(identity))
            self._run_points(translator, finished)
            self._report(translator)
        finally:
            translator.close()
        return 0

    def _setting(self, identity: str) -> str:
        recognition = [asdict(self._timing), self._args.misheard]
        return json.dumps([identity, recognition, segments_fingerprint(self._segments), code_fingerprint()])

    def _run_points(self, translator: RememberingTranslator, finished: FinishedPoints) -> None:
        columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            for point in self._points:
                outcomes = finished.get(point)
                if outcomes is None:
                    task = progress.add_task(point.name, total=len(self._segments))
                    step = lambda task=task: progress.advance(task)  # noqa: E731
                    outcomes = run_point(point, self._spoken, translator, self._languages, self._timing, step)
                    finished.add(point, outcomes)
                self._results[point.name] = measure(point, outcomes, self._references, self._indices), outcomes
                self._write(translator)

    def _write(self, translator: RememberingTranslator) -> None:
        if self._args.output is None:
            return
        self._args.output.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self._result(translator), indent=1, ensure_ascii=False)
        unfinished = self._args.output.with_suffix(".tmp")
        unfinished.write_text(text + "\n", encoding="utf-8")
        unfinished.replace(self._args.output)

    def _result(self, translator: RememberingTranslator) -> dict[str, Any]:
        results = list(self._results.values())
        return {
            "command": shlex.join(["surtitle", "benchmark", "policies", *sys.argv[3:]]),
            "pair": self._args.pair,
            "talks": list(dict.fromkeys(segment.span.talk for segment in self._segments)),
            "held_out": self._args.talks == "held-out",
            "segments": len(self._segments),
            "speech_s": round(sum(segment.span.duration_s for segment in self._segments), 1),
            "preset": self._preset.id,
            "model": self._preset.translator.model,
            "head_set": self._head_set,
            "recognition": {**asdict(self._timing), "misheard": self._args.misheard},
            "bootstrap": {"resamples": RESAMPLES, "seed": SEED, "level": LEVEL, "unit": "segment"},
            "points": [point_json(result, self._references, self._languages[1]) for result in results],
            "comparisons": [comparison_json(found) for found in comparisons(curves_of(results))],
            "run": {
                "wall_s": round(time.monotonic() - self._started, 1),
                "draft_tokens": translator.savings.tokens,
                "generated_tokens": translator.savings.generated,
                "model_calls": translator.savings.calls,
            },
            "machine": {"cpu": platform.machine(), "cores": os.cpu_count(), "system": platform.platform()},
            "versions": _versions(),
        }

    def _report(self, translator: RememberingTranslator) -> None:
        console, result = Console(), self._result(translator)
        console.print(points_table(result["points"]))
        console.print(comparison_table(result["comparisons"]))
        curves = curves_of(list(self._results.values()))
        if self._args.plot:
            self._args.plot.parent.mkdir(parents=True, exist_ok=True)
            draw(curves, f"{self._args.pair}, {result['model']}, {len(self._segments)} segments", self._args.plot)
        others = [point for name, points in curves.items() if name != "alignatt" for point in points]
        pair = worst_pair(curves.get("alignatt", []), others) if self._args.explain else None
        if pair:
            mine, other = (self._results[found.point.name][1] for found in pair)
            for loss in losses(mine, other, self._segments, self._args.explain):
                points: tuple[Point, Point] = (pair[0].point, pair[1].point)
                spoken = self._spoken[loss.segment]
                explain(console, loss, spoken, points, translator, self._languages, self._timing)


def _chosen(points: list[Point], names: list[str] | None) -> list[Point]:
    known = list(dict.fromkeys(point.policy.name for point in points))
    for name in names or ():
        if name not in known:
            raise ReplayError(f"There is no policy '{name}'; policies are: {', '.join(known)}.")
    return [point for point in points if not names or point.policy.name in names]


def _segments(args: argparse.Namespace, languages: tuple[str, str]) -> list[Segment]:
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
    """What drafts depend on besides their source: model, heads, prompt."""
    heads: Sequence[Any] = getattr(translator, "heads", ())
    layout = getattr(translator, "layout_id", preset.translator.prompt)
    return json.dumps([pair, preset.translator.kind, preset.translator.model, [list(head) for head in heads], layout])
