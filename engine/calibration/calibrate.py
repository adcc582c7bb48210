"""`surtitle calibrate MODEL --pairs FILE --direction en-de`: find a model's translation heads and write a head set."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from engine.alignatt.heads import QUERY_ROWS, Head, HeadSet, head_set_to_json
from engine.alignatt.units import separator
from engine.calibration.align import ALIGNERS
from engine.calibration.contract import TeacherForced
from engine.calibration.models import open_model
from engine.calibration.pairs import Pair, PairError, read_pairs, unit_links, without
from engine.calibration.score import Hits, Stability, pair_hits, shares, split, stability
from engine.files import why, write_atomically
from engine.models import ModelError
from engine.mt.contract import Source, TranslationError

HEADS_KEPT = 10
HELD_OUT = 0.3
SEED = 20


@dataclass(frozen=True, slots=True)
class Report:
    """What a calibration found. `top4` is the mean score of the 4 best heads on pairs they were not ranked on."""

    head_set: HeadSet
    top4: float
    stability: Stability
    pairs_ranked: int
    pairs_held_out: int
    aligned_tokens: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `calibrate`."""
    parser.add_argument("model", help="a packaged model's name, a GGUF file, or a Hugging Face folder")
    parser.add_argument("--pairs", type=Path, required=True, help="JSON lines or tab-separated sentence pairs")
    parser.add_argument("--direction", required=True, help="for example en-de")
    parser.add_argument("--aligner", choices=sorted(ALIGNERS), help="default: given alignments, else eflomal")
    parser.add_argument("--exclude", type=Path, help="text file of source sentences to leave out, one a line")
    parser.add_argument("--limit", type=int, help="use the first N pairs")
    parser.add_argument("--query-row", choices=(*QUERY_ROWS, "best"), default="best")
    parser.add_argument("--prompt", choices=("few_shot", "chat", "talks"), help="default: few_shot for base models")
    parser.add_argument("--adapter", default="", help="name or folder of an adapter, which brings its own prompt")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--data", default="", help="where the pairs come from, for the head set")
    parser.add_argument("--licence", default="", help="licence of the pairs, for the head set")
    parser.add_argument("--output", type=Path, help="head set to write (default: print the report only)")
    parser.add_argument("--report", type=Path, help="JSON report with the score of every head")


def run(args: argparse.Namespace) -> int:
    """Calibrate, print the report, write the head set. Status 2 and one sentence for bad input."""
    try:
        source_lang, _, target_lang = args.direction.partition("-")
        if not target_lang:
            raise PairError(f"'{args.direction}' is not a direction such as en-de.")
        pairs = _aligned(args)
        model = open_model(args.model, source_lang, target_lang, args.prompt, args.threads, args.adapter)
        rows = QUERY_ROWS if args.query_row == "best" else (args.query_row,)
        found = {row: _hits(model, pairs, source_lang, target_lang, row) for row in rows}
        report, scores = _best(model, found, args)
    except (PairError, ModelError, TranslationError) as error:
        print(error, file=sys.stderr)
        return 2
    _show(report)
    written = not args.output or _wrote(args.output, head_set_to_json(report.head_set))
    written &= not args.report or _wrote(args.report, _report_json(report, scores, model))
    return 0 if written else 2


def _wrote(path: Path, data: dict[str, Any]) -> bool:
    try:
        write_atomically(path, json.dumps(data, indent=2) + "\n")
    except OSError as error:
        print(f"{path} cannot be written ({error.strerror or error}); choose another place.", file=sys.stderr)
        return False
    print(f"Wrote {path}.")
    return True


def _aligned(args: argparse.Namespace) -> list[Pair]:
    pairs = read_pairs(args.pairs)
    if args.exclude:
        try:
            excluded = args.exclude.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise PairError(f"The sentences to leave out in {args.exclude} cannot be read: {why(error)}.") from error
        pairs = without(pairs, excluded)
    name = args.aligner or ("given" if all(pair.links is not None for pair in pairs) else "eflomal")
    pairs = [pair for pair in ALIGNERS[name](pairs) if pair.links][: args.limit]
    if len(pairs) < 10:
        raise PairError(f"{len(pairs)} aligned pairs are too few to calibrate on; 10 are the least, 200 are better.")
    args.aligner = name
    return pairs


def _hits(
    model: TeacherForced, pairs: Sequence[Pair], source_lang: str, target_lang: str, query_row: str
) -> list[Hits]:
    """Hits of every head on every pair that fits the context; pairs that do not are left out and counted."""
    hits, skipped = [], 0
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for pair in progress.track(pairs, description=f"{query_row} row"):
            links = unit_links(pair, source_lang)
            source = Source(links.units, source_lang, target_lang, separator(source_lang))
            ids = model.encode_target(pair.target)
            try:
                rows = model.teacher_force(source, ids, query_row)
            except TranslationError:
                skipped += 1
                continue
            hits.append(pair_hits(rows, model.pieces(ids), pair.target, links))
    if skipped:
        print(f"{skipped} pairs did not fit the model's context and were left out.", file=sys.stderr)
    return hits


def _best(
    model: TeacherForced, found: dict[str, list[Hits]], args: argparse.Namespace
) -> tuple[Report, NDArray[np.float64]]:
    """The report of the query row whose best heads score higher on the pairs they were ranked on."""
    reports = {row: _report(model, row, hits, args) for row, hits in found.items()}
    best = max(reports, key=lambda row: float(np.sort(reports[row][1])[-4:].mean()))
    return reports[best]


def _report(
    model: TeacherForced, query_row: str, hits: list[Hits], args: argparse.Namespace
) -> tuple[Report, NDArray[np.float64]]:
    ranked_on, held_out = split(len(hits), HELD_OUT, SEED)
    ranked = shares([hits[at] for at in ranked_on])
    scores = shares([hits[at] for at in held_out])
    order = np.argsort(-ranked)[:HEADS_KEPT].tolist()
    layers, query_heads = model.geometry
    stable = stability([hits[at] for at in ranked_on], SEED)
    head_set = HeadSet(
        model=Path(args.model).stem if Path(args.model).exists() else args.model,
        architecture=model.architecture,
        layers=layers,
        query_heads=query_heads,
        direction=args.direction,
        query_row=query_row,
        prompt_layout=model.layout_id,
        heads=tuple(_head(model.heads[at], float(scores[at])) for at in order),
        pairs=len(hits),
        stability=f"{stable}; ranked on {len(ranked_on)} pairs, scores from the other {len(held_out)}",
        data=args.data or f"{args.pairs.name}, alignments: {args.aligner}",
        licence=args.licence,
    )
    report = Report(
        head_set=head_set,
        top4=float(scores[order[:4]].mean()),
        stability=stable,
        pairs_ranked=len(ranked_on),
        pairs_held_out=len(held_out),
        aligned_tokens=sum(pair.tokens for pair in hits),
    )
    return report, ranked


def _head(place: tuple[int, int], score: float) -> Head:
    return Head(place[0], place[1], round(score, 3))


def _report_json(report: Report, scores: NDArray[np.float64], model: TeacherForced) -> dict[str, Any]:
    return {
        "head_set": head_set_to_json(report.head_set),
        "top4_held_out": round(report.top4, 4),
        "aligned_tokens": report.aligned_tokens,
        "scores": [
            {"layer": layer, "head": head, "score": round(float(score), 4)}
            for (layer, head), score in zip(model.heads, scores, strict=True)
        ],
    }


def _show(report: Report) -> None:
    found = report.head_set
    table = Table(title=f"{found.model} {found.direction}: row of the {found.query_row} position")
    for name in ("layer", "head", "held-out score"):
        table.add_column(name, justify="right")
    for head in found.heads:
        table.add_row(str(head.layer), str(head.head), f"{head.score:.3f}")
    console = Console()
    console.print(table)
    console.print(f"Mean of the top 4 on {report.pairs_held_out} held-out pairs: {report.top4:.3f}.")
    console.print(f"{report.aligned_tokens} aligned tokens; {report.stability}.")
