"""`surtitle benchmark translator`: what the built-in translator's sentences are like, with its adapter and without.

Sentences that nothing was trained or tuned on: the rows set aside in `resources/training`, and the five held-out talks
in `resources/evaluation` (German and Italian). Each is translated whole, and once broken off in the middle with the
policy of the preset deciding what may be shown. Speed is measured on the first sentences, attention rows included.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from engine import __version__
from engine.alignatt.heads import HeadSetError
from engine.alignatt.units import separator, split_units
from engine.asr.contract import Word
from engine.benchmarks.machine import machine
from engine.benchmarks.translation_faults import Contradiction, contradiction, untranslated
from engine.evaluation.quality import quality
from engine.evaluation.replay import parse_overrides
from engine.evaluation.replayer import ReplayError
from engine.evaluation.talks import TalkError, held_out_folder, load_segments
from engine.files import write_atomically
from engine.finetune.rows import FinetuneError, parts, read_held_out, read_rows
from engine.host import library_versions
from engine.models import ModelError
from engine.mt.contract import Source, TranslationError, Translator
from engine.mt.factory import create_translator
from engine.mt.session import LocalTranslationSession
from engine.presets import Preset, PresetError, load_preset, resources

BASE = {"translator.adapter": "", "translator.prompt": "few_shot", "translator.heads": "gemma-3-270m"}
VARIANTS = ("base", "adapter")
SETS = ("set-aside", "talks")
TAIL_WORDS = 2  # a second of speech, about as long as words wait for their commit
SHORTEST_HALVED = 6  # words
SPEED_SENTENCES = 16
SPEED_TOKENS = 24
EXAMPLES = 10
TABLE_COLUMNS = 110  # also where the output is no terminal


@dataclass(frozen=True, slots=True)
class Case:
    """A sentence in source units, and its reference translation."""

    units: tuple[str, ...]
    source: str
    reference: str


@dataclass(frozen=True, slots=True)
class Made:
    """What came of a sentence: translated whole, and what was released of its first half (None where it is short)."""

    case: Case
    whole: str
    half: str | None


@dataclass(slots=True)
class Speed:
    """Medians over sentences, rows included. `ready_s`: from nothing to a warm translator, files cached."""

    first_token_ms: float = 0.0
    tokens_per_s: float = 0.0
    ready_s: float = 0.0
    mode: str = ""
    notes: list[str] = field(default_factory=list)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("--pairs", default="en-de,en-fr,en-es,en-it", metavar="FROM-TO,…", help="language pairs (all)")
    parser.add_argument("--limit", type=int, metavar="N", help="only N sentences of each set, spread evenly")
    parser.add_argument("--sets", default=",".join(SETS), metavar="SET,…", help=f"of {', '.join(SETS)} (all)")
    parser.add_argument("--variants", default=",".join(VARIANTS), metavar="NAME,…", help="base (few-shot), adapter")
    parser.add_argument("--preset", default="laptop")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="preset value")
    parser.add_argument("--training", type=Path, metavar="FOLDER", help="sentences with held_out.tsv")
    parser.add_argument("--json", type=Path, metavar="FILE", help="result file, written again after every pair")
    parser.add_argument("--sentences", type=Path, metavar="FILE", help="also write every translation, one JSON a line")


def run(args: argparse.Namespace) -> int:
    """Run it. Exit status 2 and one sentence for bad input."""
    try:
        _Benchmark(args).run()
    except (PresetError, ModelError, HeadSetError, TranslationError, TalkError, ReplayError, FinetuneError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


class _Benchmark:
    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._pairs = [_pair(text) for text in args.pairs.split(",")]
        self._sets = _chosen(args.sets, SETS)
        self._variants = _chosen(args.variants, VARIANTS)
        self._overrides = parse_overrides(args.settings)
        self._results: list[dict[str, Any]] = []
        self._speeds: dict[str, Speed] = {}
        if args.limit is not None and args.limit < 1:
            raise ReplayError("--limit must be 1 or more.")
        for variant in self._variants:
            for pair in self._pairs:
                self._preset(variant).check_pair(*pair)

    def run(self) -> None:
        for pair in self._pairs:
            cases = {name: self._cases(name, pair) for name in self._sets}
            for variant in self._variants:
                self._run_variant(variant, pair, {name: found for name, found in cases.items() if found})
        console = Console()
        wide = Console(width=max(console.width, TABLE_COLUMNS))
        wide.print(_table(self._results))
        wide.print(_speed_table(self._speeds))

    def _preset(self, variant: str) -> Preset:
        preset = load_preset(self._args.preset, {**self._overrides, **(BASE if variant == "base" else {})})
        if variant == "adapter" and not preset.translator.adapter:
            raise PresetError(f"Preset '{preset.id}' names no adapter: give one with --set translator.adapter=NAME.")
        return preset

    def _cases(self, name: str, pair: tuple[str, str]) -> list[Case]:
        """Sentences of a set, none where it does not cover the languages."""
        if name == "talks":
            if not (held_out_folder() / f"{pair[1]}.txt").is_file():
                return []
            segments = load_segments(held_out_folder(), *pair)
            texts = [(segment.source, segment.reference) for segment in segments]
        else:
            folder = self._args.training or resources() / "training"
            rows = parts(read_rows(folder), read_held_out(folder), 0).held_out
            texts = [(row.texts[pair[0]], row.texts[pair[1]]) for row in rows]
        kept = [texts[at] for at in _spread(len(texts), self._args.limit)]
        return [Case(tuple(split_units(source, pair[0])), source, reference) for source, reference in kept]

    def _run_variant(self, variant: str, pair: tuple[str, str], sets: dict[str, list[Case]]) -> None:
        preset = self._preset(variant)
        translator, ready_s = _opened(preset, pair)
        try:
            if variant not in self._speeds and sets:
                speed = measure_speed(translator, next(iter(sets.values())), pair)
                speed.ready_s = ready_s
                self._speeds[variant] = speed
            for name, cases in sets.items():
                made = list(
                    _shown(translate(translator, preset, cases, pair), f"{variant} {'-'.join(pair)} {name}", cases)
                )
                self._keep_sentences(variant, pair, name, made)
                self._results.append({"variant": variant, "pair": "-".join(pair), "set": name, **score(made, pair[1])})
                self._write(preset)
        finally:
            translator.close()

    def _keep_sentences(self, variant: str, pair: tuple[str, str], name: str, made: Sequence[Made]) -> None:
        if self._args.sentences is None:
            return
        with self._args.sentences.open("a", encoding="utf-8") as file:
            for one in made:
                row: dict[str, str | None] = {
                    "variant": variant,
                    "pair": "-".join(pair),
                    "set": name,
                    "source": one.case.source,
                }
                row |= {"reference": one.case.reference, "whole": one.whole, "half": one.half}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _write(self, preset: Preset) -> None:
        if self._args.json is None:
            return
        self._args.json.parent.mkdir(parents=True, exist_ok=True)
        result = {
            "command": shlex.join(["surtitle", "benchmark", "translator", *sys.argv[3:]]),
            "preset": preset.id,
            "model": preset.translator.model,
            "adapter": self._preset("adapter").translator.adapter if "adapter" in self._variants else "",
            "policy": preset.policy.name,
            "half": f"first half of the words committed, the next {TAIL_WORDS} as tail",
            "results": self._results,
            "speed": {
                variant: {
                    "first_token_ms": speed.first_token_ms,
                    "tokens_per_s": speed.tokens_per_s,
                    "ready_s": speed.ready_s,
                    "mode": speed.mode,
                    "notes": speed.notes,
                    "threads": self._preset(variant).translator.threads,
                }
                for variant, speed in self._speeds.items()
            },
            "machine": {**machine(), "load_1min": os.getloadavg()[0]},
            "versions": {"surtitle": __version__, "python": platform.python_version(), **library_versions()},
        }
        write_atomically(self._args.json, json.dumps(result, indent=1, ensure_ascii=False) + "\n")


# ---------------------------------------------------------------- translating


def translate(translator: Translator, preset: Preset, cases: Sequence[Case], pair: tuple[str, str]) -> Iterator[Made]:
    """Every case whole and halved, none knowing of another. Raises `TranslationError`."""
    for at, case in enumerate(cases):
        session = LocalTranslationSession(translator, preset.policy, "benchmark", *pair)
        spoken = tuple(Word(unit, float(i), float(i + 1)) for i, unit in enumerate(case.units))
        half = None
        if len(spoken) >= SHORTEST_HALVED:
            middle = (len(spoken) + 1) // 2
            heard = spoken[: middle + TAIL_WORDS]
            half = session.update(2 * at, heard[:middle], heard[middle:], float(middle), False, _never).stable
        whole = session.update(2 * at + 1, spoken, (), float(len(spoken)), True, _never).stable
        session.close()
        yield Made(case, whole, half)


def score(made: Sequence[Made], target_lang: str) -> dict[str, Any]:
    """Figures of one set. Shares are in [0, 1]; `contradicted` is measured against the model's own whole translation,
    `unsupported` against that and the reference together."""
    left = [one for one in made if untranslated(one.whole, one.case.source, one.case.reference)]
    halves = [(one, one.half) for one in made if one.half is not None]
    by_final = [contradiction(half, one.whole) for one, half in halves]
    by_both = [contradiction(half, one.whole, one.case.reference) for one, half in halves]
    found = quality([one.whole for one in made], [one.case.reference for one in made], target_lang)
    return {
        "sentences": len(made),
        "chrf": round(found.chrf, 2),
        "bleu": round(found.bleu, 2),
        "chrf_signature": found.chrf_signature,
        "untranslated": len(left),
        "half": {
            "sentences": len(halves),
            "content_words_released": sum(one.released for one in by_final),
            "contradicted": sum(len(one.contradicted) for one in by_final),
            "contradicted_share": _share(by_final),
            "sentences_contradicted": sum(bool(one.contradicted) for one in by_final),
            "unsupported_share": _share(by_both),
        },
        "untranslated_examples": [{"source": one.case.source, "output": one.whole} for one in left[:EXAMPLES]],
    }


def _share(found: Sequence[Contradiction]) -> float | None:
    released = sum(one.released for one in found)
    return round(sum(len(one.contradicted) for one in found) / released, 4) if released else None


def measure_speed(translator: Translator, cases: Sequence[Case], pair: tuple[str, str]) -> Speed:
    """First token behind the cached fixed prompt, then tokens behind a cached prompt; medians over sentences."""
    first: list[float] = []
    rates: list[float] = []
    for case in cases[:SPEED_SENTENCES]:
        source = Source(case.units, *pair, separator(pair[0]))
        started = time.perf_counter()
        translator.draft("speed", source, (), 1, _never)
        first.append(time.perf_counter() - started)
        started = time.perf_counter()
        made = translator.draft("speed", source, (), SPEED_TOKENS, _never)
        if made.token_ids:
            rates.append(len(made.token_ids) / (time.perf_counter() - started))
    health = translator.health
    return Speed(
        round(1000 * statistics.median(first), 1),
        round(statistics.median(rates), 1) if rates else 0.0,
        mode=health.mode,
        notes=[text for text in (health.stand_in, health.reason) if text],
    )


def _opened(preset: Preset, pair: tuple[str, str]) -> tuple[Translator, float]:
    """The translator and how long it took to be ready; what is made once was made before."""
    create_translator(preset, *pair, _untold).close()
    started = time.perf_counter()
    translator = create_translator(preset, *pair, _untold)
    return translator, round(time.perf_counter() - started, 2)


# ---------------------------------------------------------------- parts


def _pair(text: str) -> tuple[str, str]:
    source, _, target = text.strip().partition("-")
    if not source or not target:
        raise ReplayError(f"'{text}' is no language pair: write it as en-de.")
    return source, target


def _chosen(text: str, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if unknown := next((name for name in names if name not in known), None):
        raise ReplayError(f"There is no '{unknown}' here; known are {', '.join(known)}.")
    return names


def _spread(count: int, limit: int | None) -> list[int]:
    if limit is None or limit >= count:
        return list(range(count))
    return [at * count // limit for at in range(limit)]


def _shown(made: Iterator[Made], what: str, cases: Sequence[Case]) -> Iterator[Made]:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(what, total=len(cases))
        for one in made:
            yield one
            progress.advance(task)


def _table(results: Sequence[dict[str, Any]]) -> Table:
    table = Table("pair", "set", "variant", "sentences", "chrF", "untranslated", "halves", "released", "contradicted")
    for row in results:
        half = row["half"]
        share = half["contradicted_share"]
        table.add_row(
            row["pair"],
            row["set"],
            row["variant"],
            str(row["sentences"]),
            f"{row['chrf']:.1f}",
            str(row["untranslated"]),
            str(half["sentences"]),
            str(half["content_words_released"]),
            "–" if share is None else f"{share:.1%}",
        )
    return table


def _speed_table(speeds: dict[str, Speed]) -> Table:
    table = Table("variant", "seam", "first token", "tokens/s with rows", "ready")
    for variant, speed in speeds.items():
        rate = f"{speed.tokens_per_s:.1f}"
        table.add_row(variant, speed.mode, f"{speed.first_token_ms:.0f} ms", rate, f"{speed.ready_s:.1f} s")
    return table


def _untold(_fraction: float, _text: str) -> None:
    pass


def _never() -> bool:
    return False
