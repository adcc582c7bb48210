"""`surtitle replay TEXT --to de --speech-rate 150`: the translation session driven from text, without audio.

One line of TEXT is one utterance. Each word is heard after its end, first as tail, and committed later.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from engine.alignatt.heads import HeadSetError
from engine.alignatt.units import separator, split_units
from engine.evaluation.recognition import Timing
from engine.evaluation.replayer import Replay, ReplayError, write_log
from engine.evaluation.trace import trace_table
from engine.files import why
from engine.models import ModelError
from engine.mt.contract import TranslationError
from engine.mt.factory import create_translator
from engine.presets import PresetError, load_preset
from engine.schemas import CaptionLine, EndLine, LogLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `replay`."""
    parser.add_argument("text", metavar="TEXT", help="text file, one utterance a line; - reads standard input")
    parser.add_argument("--from", dest="source_lang", default="en", metavar="LANG", help="language of the text (en)")
    parser.add_argument("--to", dest="target_lang", required=True, metavar="LANG", help="language to translate into")
    parser.add_argument("--preset", default="laptop", help="preset whose translator and policy are used (laptop)")
    parser.add_argument("--speech-rate", type=float, default=150.0, metavar="WPM", help="words a minute (150)")
    parser.add_argument("--delay-s", type=float, default=0.3, metavar="S", help="from a word's end to its showing")
    parser.add_argument("--commit-s", type=float, default=1.0, metavar="S", help="from there to its commit (1.0)")
    parser.add_argument("--step-s", type=float, default=0.0, metavar="S", help="report every S seconds, not each word")
    parser.add_argument("--policy", metavar="NAME", help="alignatt, hold_n, wait_k or local_agreement")
    parser.add_argument("--set", dest="settings", action="append", default=[], metavar="KEY=VALUE", help="preset value")
    parser.add_argument("--log", type=Path, metavar="PATH", help="write a session log")
    parser.add_argument("--trace", action="store_true", help="for each draft token: where it looks, why it waits")


def run(args: argparse.Namespace) -> int:
    """Replay; exit status 2 and one sentence for what cannot be done."""
    console = Console()
    try:
        timing = checked_timing(args.speech_rate, args.delay_s, args.commit_s, args.step_s)
        preset = load_preset(args.preset, parse_overrides(args.settings, args.policy))
        preset.check_pair(args.source_lang, args.target_lang)
        lines = read_utterances(args.text, args.source_lang)
        if args.log:
            check_log(args.log)
        translator = create_translator(preset, args.source_lang, args.target_lang, lambda _fraction, _text: None)
        try:
            languages = args.source_lang, args.target_lang
            replay = Replay(translator, preset, *languages, timing, args.speech_rate, trace=args.trace)
            log = replay.run(lines, lambda caption: _show(console, caption, args.source_lang, args.trace))
        finally:
            translator.close()
        if args.log:
            write_log(args.log, log)
    except (PresetError, ModelError, HeadSetError, TranslationError, ReplayError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    _summary(console, log)
    return 0


def check_log(path: Path) -> None:
    """See before a replay that its log can be written. Raises `ReplayError`."""
    if not path.parent.is_dir():
        raise ReplayError(f"The session log {path} cannot be written: its folder does not exist.")
    if path.is_dir():
        raise ReplayError(f"The session log {path} cannot be written: it is a folder.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ReplayError(f"The session log {path} cannot be written: permission denied.")


def checked_timing(speech_rate: float, delay_s: float, commit_s: float, step_s: float) -> Timing:
    """Raises `ReplayError` for times that cannot be."""
    if not 1 <= speech_rate <= 1000:
        raise ReplayError(f"A speech rate of {speech_rate:g} words a minute cannot be replayed; give 1 to 1000.")
    for name, value in (("--delay-s", delay_s), ("--commit-s", commit_s), ("--step-s", step_s)):
        if not 0 <= value <= 60:
            raise ReplayError(f"{name} is {value:g}, but it must lie between 0 and 60 seconds.")
    return Timing(delay_s, commit_s, step_s)


def parse_overrides(settings: Sequence[str], policy: str | None = None) -> dict[str, Any]:
    """Preset overrides of `--set policy.theta=0.4`; values are JSON where they can be. Raises `ReplayError`."""
    overrides: dict[str, Any] = {"policy.name": policy} if policy else {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise ReplayError(f"'{setting}' is not a setting: write KEY=VALUE, for example policy.theta=0.4.")
        try:
            overrides[key.strip()] = json.loads(value)
        except ValueError:
            overrides[key.strip()] = value
    return overrides


def read_utterances(text: str, source_lang: str) -> list[list[str]]:
    """The source units of each line that is not empty. Raises `ReplayError`."""
    try:
        content = sys.stdin.read() if text == "-" else Path(text).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ReplayError(f"The text {text} cannot be read: {why(error)}.") from error
    lines = [units for line in content.splitlines() if (units := split_units(line, source_lang))]
    if not lines:
        raise ReplayError(f"The text {'on standard input' if text == '-' else text} is empty.")
    return lines


def _show(console: Console, caption: CaptionLine, source_lang: str, trace: bool) -> None:
    """With a trace every caption, else each utterance once it is final."""
    shown = Text(caption.stable).append(caption.held, style="dim")
    if not trace:
        if caption.final:
            console.print(shown)
        return
    joint = separator(source_lang) if caption.source_stable else ""
    source = Text(caption.source_stable).append(joint + caption.source_tail, style="dim")
    console.print(Text(f"{caption.clock_s:8.2f} s  ", style="cyan").append_text(source))
    if caption.tokens:
        console.print(trace_table(caption.tokens, split_units(source.plain, source_lang)))
    console.print(shown.append(f"  [{caption.reason}]", style="dim"))


def _summary(console: Console, log: Sequence[LogLine]) -> None:
    captions, end = [line for line in log if isinstance(line, CaptionLine)], log[-1]
    assert isinstance(end, EndLine)
    finals = sum(caption.final for caption in captions)
    console.print(
        f"{finals} utterances, {len(captions)} captions, {end.audio_s:.1f} s of speech in {end.wall_s:.1f} s",
        style="dim",
        highlight=False,
    )
