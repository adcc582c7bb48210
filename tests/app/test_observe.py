"""Listeners hear in order, can leave, and cannot hurt one another."""

from __future__ import annotations

import pytest

from app.observe import Notifier


def test_listeners_hear_until_they_leave() -> None:
    notifier: Notifier[int] = Notifier()
    heard: list[int] = []
    leave = notifier.subscribe(heard.append)
    notifier.emit(1)
    leave()
    leave()
    notifier.emit(2)
    assert heard == [1]


def test_one_that_fails_does_not_silence_the_next(caplog: pytest.LogCaptureFixture) -> None:
    notifier: Notifier[int] = Notifier()
    heard: list[int] = []

    def fail(_: int) -> None:
        raise RuntimeError("broken view")

    notifier.subscribe(fail)
    notifier.subscribe(heard.append)
    notifier.emit(1)
    assert heard == [1]
    assert "broken view" in caplog.text
