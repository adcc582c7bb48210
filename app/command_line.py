"""The `surtitle` command. Bad input is one sentence on standard error and exit status 2; tracebacks go to the log."""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from app.commands.engine import COMMANDS as ENGINE_COMMANDS
from app.commands.engine import run_engine_command
from app.engine_packages import find_bundle, start_of, use
from app.errors import UserError
from app.logs import log_file, start_logging, stop_logging
from engine.presets import PresetError

log = logging.getLogger(__name__)

# Modules of `app.commands`, imported when chosen: the engine's process imports this module again.
_COMMANDS = {
    "run": "one session: a file or a microphone, in a window or in the terminal",
    "sessions": "list, show or delete recorded sessions",
    "export": "write a recorded session to txt, srt, vtt, jsonl or docx",
    "doctor": "what this machine has and what is missing",
    "setup": "the engine of an installed package, and the environment for a GPU",
}


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence. `command`: whose help it names, if not its own."""

    command = ""

    def error(self, message: str) -> NoReturn:
        program = " ".join(filter(None, (self.prog, self.command)))
        self.exit(2, f"{message[0].upper()}{message[1:]}; see `{program} --help`.\n")


class _Version(argparse.Action):
    """Asks git and the engine, so it does that only when it is wanted."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        told = importlib.import_module("app.version")
        _, engine = importlib.import_module("app.commands.doctor").examine_engine()
        print(told.program_line(), f"window: {told.window_line()}", f"engine: {engine.text}", sep="\n")
        parser.exit()


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit status."""
    multiprocessing.freeze_support()
    words = list(sys.argv[1:] if argv is None else argv)
    if failed := _guarded(lambda: _take_installed_engine(words)):
        return failed
    if words[:2] == ["benchmark", "window"]:  # the one benchmark that is the app's
        return int(importlib.import_module("app.benchmark_window").main(words[2:]))
    if words and words[0] in ENGINE_COMMANDS:
        return _guarded(lambda: _run_engine(words))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter must not end a session
    args = parser(words).parse_args(words)
    if problem := start_logging(args.verbose):
        print(problem, file=sys.stderr)
    try:
        return _guarded(lambda: args.run(args))
    finally:
        stop_logging()


def _run_engine(words: list[str]) -> int:
    if not {"-h", "--help"} & set(words) and find_bundle() is not None:
        _module("setup").ensure_engine()
    return run_engine_command(words)


def _take_installed_engine(words: list[str]) -> int:
    """In a packaged program, go on with the engine that has been installed beside it, if one has."""
    bundle = find_bundle()
    if bundle is None:
        return 0
    if words[:1] != ["setup"] and bundle.gpu_python is not None:
        os.execve(bundle.gpu_python, *start_of(bundle.gpu_python, words))
    if bundle.ready:
        use(bundle)
    return 0


def _guarded(command: Callable[[], int]) -> int:
    """Turn what goes wrong into one sentence and an exit status."""
    try:
        status = command()
        sys.stdout.flush()
        return status
    except (UserError, PresetError) as error:
        log.info("%s", error, exc_info=True)
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        # the reader of our output has left (`surtitle sessions | head`); keep Python from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        # the last resort: whatever it is, a person gets a sentence and the log gets the traceback
        log.exception("An error that nobody foresaw.")
        print(
            f"Something went wrong that should not ({type(error).__name__}): {log_file()} has the details.",
            file=sys.stderr,
        )
        return 1


def parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser, with the arguments of the command that `words` names; it ends the program when there is none."""
    handed_over = "\n".join(f"  {name:10} {text}" for name, text in ENGINE_COMMANDS.items())
    whole = Parser(
        prog="surtitle",
        description="Live translated subtitles on your own machine. Without a command: the subtitle window.",
        epilog=f"commands of the engine (see `surtitle COMMAND --help`):\n{handed_over}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    whole.add_argument("--version", action=_Version, nargs=0, help="version, commit and libraries, then leave")
    whole.add_argument("-v", "--verbose", action="store_true", help="log in detail, also to standard error")
    whole.set_defaults(run=lambda args: _module("run").open_window())
    commands = whole.add_subparsers(metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), "")
    if chosen in ENGINE_COMMANDS:
        whole.error(f"options of `{chosen}` stand behind it")
    if chosen and chosen not in _COMMANDS:
        whole.error(f"there is no command '{chosen}'; commands are {', '.join((*_COMMANDS, *ENGINE_COMMANDS))}")
    for name, text in _COMMANDS.items():
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        command.add_argument("-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        if name == chosen:
            whole.command = name
            _module(name).add_arguments(command)
            command.set_defaults(run=_module(name).run)
    return whole


def _module(name: str) -> Any:
    return importlib.import_module(f"app.commands.{name}")
