"""`surtitle run`: one session, in a window or in the terminal; `surtitle` alone: the window."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import sys
import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from app.commands.engine import run_engine_command
from app.display import display_problem
from app.engine_packages import find_bundle
from app.errors import UserError
from app.export.writer import WHAT
from app.files import settings_file
from app.options import RunOptions, check_writable, overrides_of
from app.settings import Settings, SettingsStore, load_settings
from app.signals import interrupt_ends
from engine.presets import PresetError, preset_ids

PICTURES = (".png", ".svg", ".pdf")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of `surtitle run`."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("file", nargs="?", type=Path, metavar="FILE", help="audio file to play (wav, flac, ogg)")
    source.add_argument(
        "--mic", nargs="?", const="", metavar="NAME", help="record a microphone: the default one, or NAME"
    )
    parser.add_argument("--from", dest="source", metavar="LANG", help="language spoken, for example en")
    parser.add_argument("--to", dest="target", metavar="LANG", help="language of the subtitles, for example de")
    parser.add_argument("--preset", metavar="PRESET", help=f"models and settings to use: {', '.join(preset_ids())}")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        dest="overrides",
        help="change a value of the preset, for example recogniser.model=/path/to/model",
    )
    parser.add_argument("--context", default="", metavar="TEXT", help="what the talk is about, for the translator")
    parser.add_argument("--headless", action="store_true", help="in the terminal, without a window")
    parser.add_argument("--fast", action="store_true", help="play the file as fast as the engine takes it")
    parser.add_argument(
        "--export",
        nargs="+",
        default=[],
        type=Path,
        metavar="PATH",
        help="write the subtitles at the end; the suffix is the format: .txt .srt .vtt .jsonl .docx",
    )
    parser.add_argument("--what", choices=WHAT, default="target", help="text in the exports (default: target)")
    parser.add_argument("--log", type=Path, metavar="PATH", help="write the session log (JSON lines)")
    parser.add_argument("--trace", action="store_true", help="show and log the decision on every draft token")
    parser.add_argument(
        "--trace-plot", type=Path, metavar="PNG", help="draw the attention of one utterance (source units × tokens)"
    )


def run(args: argparse.Namespace) -> int:
    """Run a session. Raises `UserError` when it cannot."""
    if args.trace_plot is None:
        return _run(args)
    _check_picture(args.trace_plot)
    with tempfile.TemporaryDirectory() as folder:
        kept = args.log is not None
        args.trace, args.log = True, args.log or Path(folder) / "log.jsonl"
        status = _run(args, log_kept=kept)
        if not args.log.exists():
            return status  # no session began
        drawn = run_engine_command(["trace-plot", str(args.log), "--output", str(args.trace_plot)])
        return status or drawn


def _run(args: argparse.Namespace, log_kept: bool = True) -> int:
    settings = _settings()
    options = replace(options_from(args, settings), log_kept=log_kept)
    if not args.headless and (problem := display_problem()):
        raise UserError(problem)
    options.check()
    _ensure_engine(window=not args.headless)
    if not args.headless:
        return window(options, settings)
    options.make_source().check()
    return run_headless(options)


def _check_picture(path: Path) -> None:
    """See before the session that its picture can be drawn. Raises `UserError`."""
    if path.suffix.lower() not in PICTURES:
        raise UserError(f"Cannot draw '{path}': the name must end in one of {', '.join(PICTURES)}.")
    if path.is_dir():
        raise UserError(f"Cannot draw '{path}': it is a folder.")
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("The picture needs matplotlib: pip install 'surtitle[evaluation]'.")
    check_writable(path)


def _ensure_engine(*, window: bool) -> None:
    """A packaged program installs its engine when it is needed first."""
    if find_bundle() is not None:
        importlib.import_module("app.commands.setup").ensure_engine(window)


def _settings() -> Settings:
    settings, notice = load_settings(settings_file())
    if notice:
        print(notice, file=sys.stderr)
    return settings


def run_headless(options: RunOptions) -> int:
    """Hand over to the terminal. Loaded here and not before: the window is there sooner without it."""
    status: int = importlib.import_module("app.headless").run_headless(options)
    return status


def options_from(args: argparse.Namespace, settings: Settings) -> RunOptions:
    """The options of a parsed command line; what it leaves open comes from the settings."""
    if args.fast and args.file is None:
        raise UserError("--fast plays a file: give one.")
    return RunOptions(
        preset=args.preset or settings.preset,
        source_lang=args.source or settings.source_lang,
        target_lang=args.target or settings.target_lang,
        file=args.file,
        microphone=args.mic or settings.microphone,
        microphone_required=bool(args.mic),
        fast=args.fast,
        exports=tuple(args.export),
        what=args.what,
        log=args.log,
        trace=args.trace,
        context=args.context,
        overrides=dict(_override(text) for text in args.overrides),
        autostart=True,
    )


def open_window() -> int:
    """`surtitle` without a command: what the settings say, in the one window of this person."""
    if problem := display_problem():
        raise UserError(problem)
    _ensure_engine(window=True)
    settings = _settings()
    return window(options_of(settings), settings, single=True)


def options_of(settings: Settings) -> RunOptions:
    """What the settings ask for; a preset or pair that is not there any more becomes the built-in one."""
    wanted = RunOptions(
        settings.preset,
        settings.source_lang,
        settings.target_lang,
        microphone=settings.microphone,
        microphone_required=False,
        context=settings.context,
    )
    try:
        wanted = replace(wanted, overrides=overrides_of(settings, settings.preset))
        wanted.check()
    except (UserError, PresetError) as error:
        print(f"{error} The settings asked for it: the built-in preset is used.", file=sys.stderr)
        return replace(wanted, preset="laptop", source_lang="en", target_lang="de", overrides={})
    return wanted


def window(options: RunOptions, settings: Settings, *, single: bool = False) -> int:
    """Hand over to the window. Qt is loaded here and not before."""
    with interrupt_ends():
        try:
            main = importlib.import_module("app.main")
        except ImportError as error:
            raise UserError(f"The window cannot be opened ({error}): use `surtitle run FILE --headless`.") from error
        status: int = main.run_window(options, settings=SettingsStore(settings, settings_file()), single=single)
    return status


def _override(text: str) -> tuple[str, Any]:
    """`key=value`; the value as TOML where it is that (a number, true, "text"), else as it stands."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise UserError(f"'--set {text}' is not KEY=VALUE.")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
