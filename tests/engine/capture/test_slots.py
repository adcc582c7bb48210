"""The slot book against a simulated scheduler that preempts, resumes, frees windows and gives blocks to others at once.

The simulated cache remembers whose token lies in each slot. Whenever the book reads, every key that a query attends to
must still be the request's own.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.capture.request import RowRequest, row_request_of
from engine.capture.slots import Group, Read, SlotBook, slots_of


@dataclass
class Simulated:
    """One request of the simulated engine."""

    name: str
    prompt: int
    wanted: int
    first_query: int
    computed: int = 0
    generated: int = 0
    blocks: list[list[int]] = field(default_factory=list)
    was_scheduled: bool = False

    @property
    def known(self) -> int:
        return self.prompt + self.generated

    @property
    def params(self) -> Any:
        request = RowRequest(0, min(2, self.prompt), self.prompt, self.first_query)
        return SimpleNamespace(extra_args=request.extra_args())


class Engine:
    """A scheduler with a tiny pool of blocks. `in_new`: resumed requests come as new ones (the second model runner)."""

    def __init__(
        self, seed: int, groups: list[Group], requests: list[Simulated], blocks: int, chunk: int, in_new: bool
    ) -> None:
        self.rng, self.groups, self.in_new, self.chunk = random.Random(seed), groups, in_new, chunk
        self.waiting, self.running = list(requests), list[Simulated]()
        self.free = [list(range(blocks)) for _ in groups]
        self.cache: list[dict[int, tuple[str, int]]] = [{} for _ in groups]
        self.book = SlotBook(groups)
        self.read: dict[str, dict[int, int]] = {r.name: {} for r in requests}
        self.finished: set[str] = set()
        self.whims = 6  # preemptions for no reason

    def step(self) -> bool:
        scheduled = SimpleNamespace(
            scheduled_new_reqs=[],
            num_scheduled_tokens={},
            finished_req_ids=self.finished,
            preempted_req_ids=set(),
            scheduled_cached_reqs=SimpleNamespace(
                req_ids=[], resumed_req_ids=set(), new_block_ids=[], num_computed_tokens=[]
            ),
        )
        self.finished = set()
        if self.running and self.whims and self.rng.random() < 0.15:
            self.whims -= 1
            self._preempt(scheduled, self.rng.choice(self.running))
        for request in list(self.running):
            if request in self.running:
                self._advance(scheduled, request)
        if self.waiting and len(self.running) < 3:
            self._admit(scheduled, self.waiting[0])
        for read in self.book.begin_step(scheduled):
            self._check(read)
        self._run(scheduled.num_scheduled_tokens)
        return bool(self.waiting or self.running or self.finished)

    def _admit(self, scheduled: Any, request: Simulated) -> None:
        request.blocks = [[] for _ in self.groups]
        resumed = request.was_scheduled
        if not self._grow(request, min(self.chunk, request.known)):
            return
        self.waiting.remove(request)
        self.running.append(request)
        request.was_scheduled = True
        if resumed and not self.in_new:
            scheduled.scheduled_cached_reqs.resumed_req_ids.add(request.name)
            self._cached(scheduled, request, [list(ids) for ids in request.blocks])
        else:
            scheduled.scheduled_new_reqs.append(
                SimpleNamespace(
                    req_id=request.name,
                    block_ids=[list(ids) for ids in request.blocks],
                    num_computed_tokens=0,
                    sampling_params=request.params,
                )
            )
        scheduled.num_scheduled_tokens[request.name] = min(self.chunk, request.known)

    def _advance(self, scheduled: Any, request: Simulated) -> None:
        for group, spec in enumerate(self.groups):
            for number in range(spec.freed_below(request.computed) // spec.block_size):
                if request.blocks[group][number] >= 0:
                    self.free[group].append(request.blocks[group][number])
                    request.blocks[group][number] = -1
        before = [len(ids) for ids in request.blocks]
        count = min(self.chunk, request.known - request.computed)
        while not self._grow(request, count):
            victim = self.running[-1]
            self._preempt(scheduled, victim)
            if victim is request:
                return
        new = [ids[old:] for ids, old in zip(request.blocks, before, strict=True)]
        self._cached(scheduled, request, new if any(new) else None)
        scheduled.num_scheduled_tokens[request.name] = count

    def _cached(self, scheduled: Any, request: Simulated, blocks: list[list[int]] | None) -> None:
        cached = scheduled.scheduled_cached_reqs
        cached.req_ids.append(request.name)
        cached.new_block_ids.append(blocks)
        cached.num_computed_tokens.append(request.computed)

    def _grow(self, request: Simulated, count: int) -> bool:
        need = [
            -(-(request.computed + count) // g.block_size) - len(ids)
            for g, ids in zip(self.groups, request.blocks, strict=True)
        ]
        if any(more > len(free) for more, free in zip(need, self.free, strict=True)):
            return False
        for free, ids, more in zip(self.free, request.blocks, need, strict=True):
            self.rng.shuffle(free)
            ids.extend(free.pop() for _ in range(more))
        return True

    def _release(self, request: Simulated) -> None:
        for free, ids in zip(self.free, request.blocks, strict=True):
            free.extend(block for block in ids if block >= 0)

    def _preempt(self, scheduled: Any, request: Simulated) -> None:
        self._release(request)
        self.running.remove(request)
        self.waiting.insert(0, request)
        request.computed = 0
        scheduled.preempted_req_ids.add(request.name)

    def _run(self, counts: dict[str, int]) -> None:
        for request in list(self.running):
            for position in range(request.computed, request.computed + counts.get(request.name, 0)):
                for group, spec in enumerate(self.groups):
                    block = request.blocks[group][position // spec.block_size]
                    self.cache[group][block * spec.block_size + position % spec.block_size] = (request.name, position)
            request.computed += counts.get(request.name, 0)
            if request.computed == request.known:
                request.generated += 1
                if request.generated == request.wanted:
                    self.running.remove(request)
                    self._release(request)
                    self.finished.add(request.name)

    def _check(self, read: Read) -> None:
        for query in range(read.first, read.last):
            for group, spec in enumerate(self.groups):
                low = spec.needs_from(query)
                slots = slots_of(read.blocks[group], spec.block_size, low, query + 1)
                held = [self.cache[group].get(int(slot)) for slot in slots]
                assert held == [(read.request_id, position) for position in range(low, query + 1)]
            self.read[read.request_id][query] = self.read[read.request_id].get(query, 0) + 1


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    window=st.integers(2, 20),
    block_sizes=st.tuples(st.sampled_from([1, 2, 4, 16]), st.sampled_from([2, 4, 16])),
    shapes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20), st.booleans()), min_size=1, max_size=4),
    chunk=st.integers(2, 50),
    in_new=st.booleans(),
)
def test_every_row_is_read_while_its_blocks_are_its_own(seed, window, block_sizes, shapes, chunk, in_new):
    groups = [Group(block_sizes[0], window), Group(block_sizes[1])]
    requests = [
        Simulated(f"r{i}", prompt, wanted, prompt if own else prompt - 1)
        for i, (prompt, wanted, own) in enumerate(shapes)
    ]
    engine = Engine(seed, groups, requests, blocks=72, chunk=chunk, in_new=in_new)
    for _ in range(3000):
        if not engine.step():
            break
    else:
        pytest.fail("the simulated engine did not finish")
    for request, (prompt, wanted, _) in zip(requests, shapes, strict=True):
        assert set(engine.read[request.name]) == set(range(request.first_query, prompt + wanted - 1))
        assert request.name in engine.book.finished


def new(name: str, blocks: list[list[int]], params: Any, computed: int = 0) -> Any:
    return SimpleNamespace(req_id=name, block_ids=blocks, num_computed_tokens=computed, sampling_params=params)


def step(**changes: Any) -> Any:
    cached = SimpleNamespace(req_ids=[], resumed_req_ids=set(), new_block_ids=[], num_computed_tokens=[])
    base = {"scheduled_new_reqs": [], "num_scheduled_tokens": {}, "finished_req_ids": set(), "preempted_req_ids": None}
    return SimpleNamespace(**{"scheduled_cached_reqs": cached, **base, **changes})


def wanted(prompt: int = 4) -> Any:
    return SimpleNamespace(extra_args=RowRequest(0, 2, prompt, prompt - 1).extra_args())


def test_requests_without_a_row_request_are_left_alone():
    book = SlotBook([Group(4)])
    book.begin_step(
        step(scheduled_new_reqs=[new("a", [[1]], SimpleNamespace(extra_args=None))], num_scheduled_tokens={"a": 4})
    )
    assert not book.live
    assert row_request_of(None) is None


def test_rows_between_steps_and_a_prefix_hit():
    book = SlotBook([Group(4)])
    book.begin_step(step(scheduled_new_reqs=[new("a", [[3, 5]], wanted(6), 4)], num_scheduled_tokens={"a": 2}))
    read = book.read_now("a")
    assert read is not None
    assert (read.first, read.last) == (5, 6)
    assert slots_of(read.blocks[0], 4, 0, 6).tolist() == [12, 13, 14, 15, 20, 21]
    assert book.read_now("a") is None
    assert book.take("a") is read.tracked


def test_a_cancelled_request_is_never_read():
    book = SlotBook([Group(4)])
    book.begin_step(step(scheduled_new_reqs=[new("a", [[1]], wanted())], num_scheduled_tokens={"a": 4}))
    book.drop("a")
    assert book.begin_step(step(finished_req_ids={"a"})) == []
    assert book.take("a") is None


@pytest.mark.parametrize("bad", [(0, 5, 4, 3), (-1, 1, 4, 3), (0, 1, 4, -1)])
def test_a_row_request_outside_its_prompt_is_refused(bad):
    with pytest.raises(ValueError):
        RowRequest(*bad)


def test_slots_follow_the_block_table():
    np.testing.assert_array_equal(slots_of([7, 2], 4, 2, 6), [30, 31, 8, 9])
