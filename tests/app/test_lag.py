"""Why the subtitles are behind, and whether it grows."""

from __future__ import annotations

import pytest

from app.lag import KEPT_S, Cause, LagWatch


def watched(lags: list[float], backlog_s: float = 0.0, draft_ms: float | None = None) -> LagWatch:
    watch = LagWatch()
    for second, lag_s in enumerate(lags):
        watch.heard(float(second), lag_s, backlog_s)
    if draft_ms is not None:
        watch.translated({"mt_ms": draft_ms, "decide_ms": 0.1})
    return watch


@pytest.mark.parametrize(
    ("lag_s", "backlog_s", "draft_ms", "cause"),
    [
        (1.0, 5.0, 9000.0, Cause.NONE),
        (6.0, 4.0, 300.0, Cause.RECOGNISER),
        (6.0, 0.5, 2500.0, Cause.TRANSLATOR),
        (6.0, 0.5, 300.0, Cause.GRAMMAR),
        (6.0, 0.5, None, Cause.GRAMMAR),
    ],
)
def test_the_cause(lag_s: float, backlog_s: float, draft_ms: float | None, cause: Cause) -> None:
    assert watched([lag_s], backlog_s, draft_ms).judge().cause is cause


def test_growing_is_clearly_more_than_before() -> None:
    assert watched([second * 0.1 for second in range(40)]).judge().growing
    assert not watched([4.0] * 40).judge().growing
    assert not watched([4.0 - second * 0.05 for second in range(40)]).judge().growing
    assert not watched([9.0]).judge().growing, "nothing to compare with"


def test_a_release_without_a_draft_says_nothing_of_the_translator() -> None:
    watch = watched([6.0], 0.0, 2500.0)
    for _ in range(20):
        watch.translated({"decide_ms": 0.2})
    assert watch.judge().draft_ms == 2500.0


def test_memory_is_bounded_and_a_new_session_forgets() -> None:
    watch = watched([float(n % 7) for n in range(10_000)])
    assert len(watch.curve) <= KEPT_S + 1
    watch.reset()
    assert watch.judge().lag_s == 0.0
