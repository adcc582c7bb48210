"""Which KV-cache slots a request's tokens lie in, and when its rows must be read. Host side only, no torch.

A row may be read from the moment its query has run until a block that it needs is given to somebody else. Blocks go
when a request finishes, when it is preempted, and, in sliding-window groups, when they fall out of the window. All
three are known at the start of a step, before the step writes anything: `SlotBook.begin_step` lists the reads due then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.capture.request import RowRequest, row_request_of


@dataclass(frozen=True, slots=True)
class Group:
    """One KV-cache group: `window` is 0 when its blocks live as long as the request."""

    block_size: int
    window: int = 0

    def freed_below(self, computed: int) -> int:
        """Positions below this may have been given away once `computed` tokens are done."""
        if not self.window:
            return 0
        return max(0, computed - self.window + 1) // self.block_size * self.block_size

    def needs_from(self, query: int) -> int:
        """First position that a query at this position attends to."""
        return max(0, query - self.window + 1) if self.window else 0


@dataclass(slots=True)
class Tracked:
    """A request whose rows are wanted. `computed`: tokens whose step was launched; `read`: first query not yet read."""

    request: RowRequest
    blocks: list[list[int]]
    computed: int
    read: int
    chunks: list[Any] = field(default_factory=list)
    dropped: bool = False

    @property
    def pending(self) -> int:
        return max(0, self.computed - self.read)


@dataclass(frozen=True, slots=True)
class Read:
    """Queries [first, last) of a request, to be read from `blocks` (a list for each group) before the step runs.

    The blocks are those it had when the read fell due: a request can be preempted and resumed within one step.
    """

    request_id: str
    tracked: Tracked
    blocks: list[list[int]]
    first: int
    last: int


class SlotBook:
    """Follows every request with a row request through the scheduler's steps."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = tuple(groups)
        self.live: dict[str, Tracked] = {}
        self.finished: dict[str, Tracked] = {}
        self.counts = {"requests": 0, "preempted": 0, "resumed": 0, "read_early": 0}

    def begin_step(self, scheduled: Any) -> list[Read]:
        """Reads that are due before this step runs, in order. `scheduled`: the step's SchedulerOutput."""
        reads = [*self._on_preempted(scheduled), *self._on_finished(scheduled), *self._on_advance(scheduled)]
        self._add_new(scheduled.scheduled_new_reqs)
        self._add_blocks(scheduled.scheduled_cached_reqs)
        for request_id, count in scheduled.num_scheduled_tokens.items():
            if request_id in self.live:
                self.live[request_id].computed += count
        return reads

    def read_now(self, request_id: str) -> Read | None:
        """The read that completes a live request between two steps, or None when nothing is pending."""
        tracked = self.live.get(request_id)
        return self._due(request_id, tracked) if tracked else None

    def drop(self, request_id: str) -> None:
        """Nobody wants this request's rows any more (it was cancelled)."""
        self.finished.pop(request_id, None)
        if tracked := self.live.get(request_id):
            tracked.dropped = True
            tracked.chunks.clear()

    def take(self, request_id: str) -> Tracked | None:
        """The request with the chunks read so far; it is forgotten unless it still runs."""
        return self.finished.pop(request_id, None) or self.live.get(request_id)

    def _due(self, request_id: str, tracked: Tracked) -> Read | None:
        if tracked.dropped or not tracked.pending:
            return None
        read = Read(request_id, tracked, tracked.blocks, tracked.read, tracked.computed)
        tracked.read = tracked.computed
        return read

    def _on_preempted(self, scheduled: Any) -> Iterator[Read]:
        for request_id in scheduled.preempted_req_ids or ():
            if tracked := self.live.get(request_id):
                self.counts["preempted"] += 1
                if read := self._due(request_id, tracked):
                    yield read

    def _on_finished(self, scheduled: Any) -> Iterator[Read]:
        for request_id in scheduled.finished_req_ids:
            tracked = self.live.pop(request_id, None)
            if tracked is None:
                continue
            if read := self._due(request_id, tracked):
                yield read
            if not tracked.dropped:
                self.finished[request_id] = tracked

    def _on_advance(self, scheduled: Any) -> Iterator[Read]:
        cached = scheduled.scheduled_cached_reqs
        for request_id, computed in zip(cached.req_ids, cached.num_computed_tokens, strict=True):
            tracked = self.live.get(request_id)
            if tracked is None or not tracked.pending or request_id in cached.resumed_req_ids:
                continue
            lost = any(group.needs_from(tracked.read) < group.freed_below(computed) for group in self._groups)
            if lost and (read := self._due(request_id, tracked)):
                self.counts["read_early"] += 1
                yield read

    def _add_new(self, new_requests: Sequence[Any]) -> None:
        for new in new_requests:
            request = row_request_of(new.sampling_params)
            if request is None:
                continue
            blocks = [list(ids) for ids in new.block_ids]
            if tracked := self.live.get(new.req_id):
                self._resume(tracked, blocks, new.num_computed_tokens)
            else:
                self.counts["requests"] += 1
                self.live[new.req_id] = Tracked(request, blocks, new.num_computed_tokens, request.first_query)

    def _add_blocks(self, cached: Any) -> None:
        rows = zip(cached.req_ids, cached.new_block_ids, cached.num_computed_tokens, strict=True)
        for request_id, new_blocks, computed in rows:
            tracked = self.live.get(request_id)
            if tracked is None:
                continue
            if request_id in cached.resumed_req_ids:
                self._resume(tracked, [list(ids) for ids in new_blocks or ()], computed)
                continue
            for mine, more in zip(tracked.blocks, new_blocks or (), strict=False):
                mine.extend(more)
            tracked.computed = computed

    def _resume(self, tracked: Tracked, blocks: list[list[int]], computed: int) -> None:
        """A preempted request runs again: queries from `computed` on are computed anew, so their rows are read anew."""
        self.counts["resumed"] += 1
        tracked.blocks, tracked.computed = blocks, computed
        tracked.read = max(tracked.request.first_query, min(tracked.read, computed))


def slots_of(blocks: Sequence[int], block_size: int, first: int, last: int) -> NDArray[np.int64]:
    """Slots of positions [first, last) of a request with these blocks."""
    positions = np.arange(first, last)
    return np.asarray(blocks, np.int64)[positions // block_size] * block_size + positions % block_size
