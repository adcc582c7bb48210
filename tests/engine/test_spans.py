"""Spans of work: told twice, in order and also of work that fails; nothing without a listener."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from engine.spans import Span, listen, span


@pytest.fixture
def told() -> Iterator[list[Span]]:
    spans: list[Span] = []
    listen(spans.append)
    yield spans
    listen(None)


def test_a_span_is_told_at_its_beginning_and_its_end(told: list[Span]) -> None:
    with span("recogniser", 1.5), span("alignment"):
        pass
    assert [(one.stage, one.ended_s is None, one.at_s) for one in told] == [
        ("recogniser", True, 1.5),
        ("alignment", True, None),
        ("alignment", False, None),
        ("recogniser", False, 1.5),
    ]
    whole, part = told[3], told[2]
    assert whole.ended_s is not None
    assert part.ended_s is not None
    assert whole.began_s <= part.began_s <= part.ended_s <= whole.ended_s


def test_work_that_fails_has_an_end(told: list[Span]) -> None:
    with pytest.raises(RuntimeError), span("translation"):
        raise RuntimeError
    assert told[-1].ended_s is not None


def test_nobody_listens() -> None:
    with span("translation"):
        pass
