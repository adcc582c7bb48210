from __future__ import annotations

from collections.abc import Callable

from engine.mt.llama_threads import PROBE_EVERY, ThreadChoice


def run(choice: ThreadChoice, decodes: int, seconds: Callable[[int], float]) -> list[int]:
    used = []
    for _ in range(decodes):
        used.append(choice.choose())
        choice.note(used[-1], seconds(used[-1]))
    return used


def test_one_thread_needs_no_choice() -> None:
    assert set(run(ThreadChoice(1), 50, lambda threads: 0.02)) == {1}


def test_two_threads_while_they_are_faster() -> None:
    used = run(ThreadChoice(2), 200, lambda threads: 0.03 / threads)
    assert used[0] == 2
    assert used.count(1) <= 2 + 200 // PROBE_EVERY


def test_one_thread_beside_other_work_and_two_again_afterwards() -> None:
    choice = ThreadChoice(2)
    run(choice, 20, lambda threads: 0.03 / threads)
    busy = run(choice, 200, lambda threads: 0.16 if threads == 2 else 0.04)
    assert busy[10:].count(2) <= 1 + 190 // PROBE_EVERY
    free = run(choice, 4 * PROBE_EVERY, lambda threads: 0.03 / threads)
    assert free[-PROBE_EVERY:].count(2) >= PROBE_EVERY - 1
