"""`python -m engine COMMAND …`: the engine's own commands. `surtitle COMMAND …` hands them over to here."""

from __future__ import annotations

import argparse
import importlib
import logging
import sys
from typing import NoReturn

# command: (module with `add_arguments(parser)` and `run(args) -> int`, one line of help)
COMMANDS = {
    "doctor": ("engine.doctor", "what this machine's engine has: models, libraries, GPUs"),
    "calibrate": ("engine.calibration.calibrate", "find a model's translation heads"),
    "evaluate": ("engine.evaluation.evaluate", "score session logs: quality, latency, erasure"),
    "trace-plot": ("engine.evaluation.picture", "draw the attention of one traced utterance"),
    "mt-server": ("engine.server.command", "serve a translator to other programs (protocol v1)"),
    "replay": ("engine.evaluation.replay", "drive the translator from text with simulated recognition"),
}
BENCHMARKS = {
    "session": ("engine.benchmarks.session", "a whole session: real-time factor, lag, CPU and memory"),
    "recogniser": ("engine.benchmarks.recogniser", "the recogniser alone: CPU time, delay of settled words, errors"),
    "asr": ("engine.benchmarks.asr", "cost of the recogniser's updates, as utterances grow and sessions come together"),
    "policies": ("engine.benchmarks.policies", "quality against latency of every policy"),
    "llamacpp": (
        "engine.benchmarks.llamacpp",
        "milliseconds per token of the built-in translator, alone and beside work",
    ),
    "server": ("engine.benchmarks.server", "the MT server: round trips, release on commit, many sessions"),
    "hf-seams": ("engine.benchmarks.hf_seams", "what rows cost in the Hugging Face translator"),
    "translator": ("engine.benchmarks.translator", "the built-in translator's sentences and speed, base and adapter"),
    "mt": ("engine.benchmarks.mt", "milliseconds per token of the translator's seams"),
    "memory": ("engine.benchmarks.memory", "how a GPU preset's memory is split, computed from its models' dimensions"),
}


# missing package: the extra that brings it
EXTRAS = {
    "sacrebleu": "evaluation",
    "omnisteval": "evaluation",
    "matplotlib": "evaluation",
    "eflomal": "calibration",
    "torch": "torch",
    "transformers": "torch",
    "vllm": "gpu",
    "llama_cpp": "laptop",
    "faster_whisper": "laptop",
}


# Of the app, which takes it from the command line before it comes to here.
WINDOW = {"window": "the subtitle window: cold start, event to painted text, CPU time"}

INTERRUPTED = 130
# Errors whose message is a sentence for the person who typed the command; by name, since they come from all rooms.
BAD_INPUT = ("PresetError", "ModelError", "HeadSetError", "TranslationError")


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one sentence."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{message[0].upper()}{message[1:]}; see `{self.prog} --help`.\n")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; exit status 2 and one sentence for bad input, 130 after Ctrl-C."""
    try:
        return _main(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the last resort: a person gets a sentence and the log the traceback
        return _tell(error)


def _main(arguments: list[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    table, program = COMMANDS, "surtitle"
    if words[:1] == ["benchmark"]:
        table, program, words = BENCHMARKS, "surtitle benchmark", words[1:]
    if not words or words[0] not in table:
        return _explain(program, words, {name: text for name, (_, text) in table.items()})
    try:
        return _run(program, words, table)
    except ModuleNotFoundError as error:
        print(
            f"{program} {words[0]} needs the package '{error.name}': pip install '{_extra(error.name)}'.",
            file=sys.stderr,
        )
        return 2


def _tell(error: Exception) -> int:
    """Say in a sentence what a command did not; the exit status."""
    if type(error).__name__ in BAD_INPUT:
        print(error, file=sys.stderr)
        return 2
    from engine.logs import log_to_file

    path = log_to_file("engine")
    logging.getLogger("surtitle.engine").error("An error that nobody foresaw.", exc_info=error)
    where = f"{path} has the details" if path else str(error)
    print(f"Something went wrong that should not ({type(error).__name__}): {where}.", file=sys.stderr)
    return 1


def _explain(program: str, words: list[str], known: dict[str, str]) -> int:
    """Help where it is asked for; otherwise the sentence that says which commands there are."""
    more = WINDOW if program.endswith("benchmark") else {"benchmark": "speed of " + ", ".join((*BENCHMARKS, *WINDOW))}
    known |= more
    what = "benchmark" if more is WINDOW else "command"
    parser = _Parser(
        prog=program,
        usage=f"{program} {what.upper()} …",
        epilog=f"{what}s:\n" + "\n".join(f"  {name:10} {text}" for name, text in known.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _, rest = parser.parse_known_args(words[:1])
    problem = f"there is no {what} '{rest[0]}'" if rest else f"name a {what}"
    parser.error(f"{problem}; {what}s are {', '.join(known)}")


def _extra(package: str | None) -> str:
    """What to install for a package that is missing: the extra that brings it."""
    known = EXTRAS.get((package or "").split(".")[0])
    return f"surtitle[{known}]" if known else f"{package}"


def _run(program: str, words: list[str], table: dict[str, tuple[str, str]]) -> int:
    module = importlib.import_module(table[words[0]][0])
    command = _Parser(prog=f"{program} {words[0]}", description=table[words[0]][1])
    module.add_arguments(command)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    return int(module.run(command.parse_args(words[1:])))


if __name__ == "__main__":
    sys.exit(main())
