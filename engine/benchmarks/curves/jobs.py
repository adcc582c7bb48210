"""Segments under every point, in this process or spread over several.

A segment is the unit of work: its points share drafts. Between segments only the model's cache is shared, which changes
attention masses by rounding and no more: outcomes hardly depend on how many processes there are (see README.md).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from engine.benchmarks.curves.points import Outcome, Point, Spoken, outcome_of
from engine.evaluation.continuations import RememberingTranslator, Savings
from engine.evaluation.recognition import Timing
from engine.mt.contract import TranslationError, Translator

Open = Callable[[], Translator]


@dataclass(frozen=True, slots=True)
class Task:
    """One segment, the points that are still to be run on it, and the file of its drafts."""

    number: int
    spoken: Spoken
    points: tuple[Point, ...]
    drafts: Path
    languages: tuple[str, str]
    timing: Timing


@dataclass(frozen=True, slots=True)
class Finished:
    """A task with its outcomes, one for each of its points."""

    task: Task
    outcomes: tuple[Outcome, ...]
    savings: Savings


def run_task(task: Task, translator: Translator) -> Finished:
    """Run one task. Raises `TranslationError` and `StoreError`."""
    remembering = RememberingTranslator(translator, task.drafts)
    outcomes = tuple(outcome_of(point, task.spoken, remembering, task.languages, task.timing) for point in task.points)
    return Finished(task, outcomes, remembering.savings)


def run_tasks(tasks: Sequence[Task], jobs: int, translator: Translator, open_translator: Open) -> Iterator[Finished]:
    """Run tasks as they come free: with `translator`, or in `jobs` processes that each open one of their own.

    `open_translator` must be picklable. Raises what `run_task` raises, and `TranslationError` when a process dies.
    """
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield run_task(task, translator)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), context, _start, (open_translator,))
    try:
        waiting = [pool.submit(_work, task) for task in tasks]
        for future in as_completed(waiting):
            yield future.result()
    except BrokenProcessPool as error:
        raise TranslationError("A process of the benchmark died; what is finished is kept, run it again.") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_translator: Translator | None = None


def _start(open_translator: Open) -> None:
    """In a new process: its translator."""
    global _translator
    _translator = open_translator()


def _work(task: Task) -> Finished:
    assert _translator is not None
    return run_task(task, _translator)
