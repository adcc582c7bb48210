"""`surtitle benchmark llamacpp`: milliseconds per token of the built-in translator, rows included.

Alone, beside a busy Python thread (a recogniser's pure-Python work in the same interpreter) at two switch intervals,
and in a process of its own beside a busy one. Wall time says what a viewer waits, CPU time what the work costs: on a
machine that others use as well only the second is a property of the program. A busy thread's CPU time is counted in.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.alignatt.heads import HeadSetError, load_head_set
from engine.files import write_atomically
from engine.models import ModelError, resolve
from engine.mt.contract import Source, TranslationError
from engine.mt.llamacpp import LlamaCppTranslator
from engine.presets import load_preset, resources

TOKENS = 16
SENTENCES = (
    "Last week we opened a new library in the old part of the town.",
    "If you have any questions about the program, please ask me after the talk.",
    "The second experiment took much longer than all of us had expected.",
    "My sister works in a hospital near the sea and comes home late every evening.",
)
Figures = dict[str, float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("--preset", default="laptop", help="whose model and heads are measured")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--repeats", type=int, default=2, help="passes over the sentences")
    parser.add_argument("--json", type=Path, help="also write the figures here")


def run(args: argparse.Namespace) -> int:
    """Run it. Status 2 for bad input."""
    found: dict[str, Figures] = {}
    try:
        for threads in (int(number) for number in args.threads.split(",")):
            for name, figures in _measure(args.preset, threads, args.repeats):
                found[f"{threads} thread(s), {name}"] = figures
                print(
                    f"{threads} thread(s), {name:34}",
                    "  ".join(f"{k} {v:6.1f}" for k, v in figures.items()),
                    flush=True,
                )
    except (TranslationError, ModelError, HeadSetError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if args.json:
        machine = {"cpus": os.cpu_count(), "load_1min": os.getloadavg()[0], "python": sys.version.split()[0]}
        write_atomically(args.json, json.dumps({"machine": machine, "figures": found}, indent=2) + "\n")
    return 0


def _measure(preset: str, threads: int, repeats: int) -> Iterator[tuple[str, Figures]]:
    translator = _open(preset, threads)
    usual = sys.getswitchinterval()
    yield "alone", _drafts(translator, repeats)
    for interval in (usual, 1e-4):
        sys.setswitchinterval(interval)
        with _busy_thread():
            yield f"busy thread, switch interval {interval * 1e3:g} ms", _drafts(translator, repeats)
    sys.setswitchinterval(usual)
    translator.close()
    with multiprocessing.get_context("spawn").Pool(1) as pool, _busy_thread():
        yield "own process beside a busy one", pool.apply(_in_child, (preset, threads, repeats))


def _in_child(preset: str, threads: int, repeats: int) -> Figures:
    return _drafts(_open(preset, threads), repeats)


def _open(preset_id: str, threads: int) -> LlamaCppTranslator:
    preset = load_preset(preset_id)
    head_set, _ = load_head_set(resources() / "heads" / preset.translator.heads, "en-de")
    translator = LlamaCppTranslator(
        resolve(preset.translator.model),
        preset.translator.prompt,
        [(head.layer, head.head) for head in head_set.top(preset.policy.top_k)],
        head_set.query_row,
        threads=threads,
        n_ctx=preset.translator.context_tokens,
    )
    translator.warm_up("en", "de")
    return translator


def _drafts(translator: LlamaCppTranslator, repeats: int) -> Figures:
    """Medians over sentences: the first token behind a cached prefix, and each further token; wall and CPU, in ms."""
    first: list[tuple[float, float]] = []
    further: list[tuple[float, float]] = []
    for text in SENTENCES * repeats:
        source = Source(tuple(text.split()), "en", "de")
        times, _ = _timed(translator, source, 1)
        first.append(times)
        # The prompt is in the cache now, all but its last token: as many steps as tokens.
        times, tokens = _timed(translator, source, TOKENS)
        further.append((times[0] / tokens, times[1] / tokens))
    return {
        "first token ms": _median(first, 0),
        "CPU": _median(first, 1),
        "each token ms": _median(further, 0),
        "CPU ": _median(further, 1),
    }


def _timed(translator: LlamaCppTranslator, source: Source, limit: int) -> tuple[tuple[float, float], int]:
    """One draft: (wall, CPU) in milliseconds, and its tokens."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = translator.draft("benchmark", source, (), limit, _never)
    times = (time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3
    return times, max(1, len(made.token_ids))


def _median(rows: list[tuple[float, float]], column: int) -> float:
    return round(statistics.median(row[column] for row in rows), 2)


def _never() -> bool:
    return False


@contextmanager
def _busy_thread() -> Iterator[None]:
    """A thread that never gives up the interpreter lock of its own accord."""
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            for number in range(5_000):
                math.sin(number)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
