"""`surtitle evaluate LOG … --reference FILE`: quality, latency and conduct of recorded sessions."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from engine.schemas import LogError

if TYPE_CHECKING:
    from engine.evaluation.scores import Scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `evaluate`."""
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="session logs, parts of one whole, in order")
    parser.add_argument("--reference", type=Path, required=True, metavar="FILE", help="reference translation, by lines")
    parser.add_argument(
        "--segments",
        type=Path,
        metavar="FILE",
        help="times of the reference lines (YAML list of wav, offset, duration); without it, line n is utterance n",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")


def run(args: argparse.Namespace) -> int:
    """Print the scores; exit status 2 and one sentence for what cannot be scored."""
    try:
        from engine.evaluation.scores import EvaluationError, load_log, score
        from engine.evaluation.talks import TalkError, read_lines, read_spans
    except ModuleNotFoundError as error:
        sys.stderr.write(f"{error.name} is not installed: pip install 'surtitle[evaluation]'.\n")
        return 2
    try:
        references = read_lines(args.reference)
        spans = read_spans(args.segments) if args.segments else None
        scores = score([load_log(path) for path in args.logs], references, spans)
    except (LogError, TalkError, EvaluationError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if args.json:
        sys.stdout.write(json.dumps(scores.as_dict(), ensure_ascii=False) + "\n")
    else:
        Console().print(_table(scores, aligned=spans is not None))
    return 0


def _table(scores: Scores, aligned: bool) -> Table:
    quality, latency, conduct = scores.quality, scores.latency, scores.conduct
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    how = "aligned to the segment times" if aligned else "utterance by utterance"
    unclosed = f", {conduct.unclosed_utterances} not closed" if conduct.unclosed_utterances else ""
    rows = [
        ("segments", str(scores.segments), how),
        ("utterances", str(conduct.utterances), f"{conduct.captions} captions{unclosed}"),
        ("target units", str(conduct.target_units), "words; characters in scripts without spaces"),
        ("BLEU", f"{quality.bleu:.2f}", quality.bleu_signature),
        ("chrF", f"{quality.chrf:.2f}", quality.chrf_signature),
        ("LAAL CU / CA", _pair(latency.laal_cu_s, latency.laal_ca_s), "by audio time / with computation"),
        ("LongYAAL CU / CA", _pair(latency.long_yaal_cu_s, latency.long_yaal_ca_s), ""),
        ("erasure of stable text", _number(conduct.erasure, 3), "units withdrawn ÷ units; must be 0"),
        ("erasure with held text", _number(conduct.held_erasure, 3), "all that was on screen"),
        ("stable before the final", _percent(conduct.stable_before_final), "target units"),
        ("held text", _percent(conduct.hold_share), f"of open captions; {_percent(conduct.hold_time_share)} of time"),
        ("releases on commit", str(conduct.releases_on_commit), "without a model call"),
        ("real-time factor", _number(conduct.real_time_factor, 3), "computation ÷ audio"),
        ("wall factor", _number(conduct.wall_factor, 3), "wall-clock ÷ audio"),
    ]
    for row in rows:
        table.add_row(*row)
    return table


def _pair(first: float | None, second: float | None) -> str:
    return f"{_number(first, 2)} / {_number(second, 2)} s"


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
