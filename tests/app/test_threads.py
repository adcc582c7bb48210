"""Blocking calls on a thread of their own."""

from __future__ import annotations

import asyncio
import threading

import pytest

from app.threads import in_thread


def test_the_result_comes_back_from_another_thread() -> None:
    assert asyncio.run(in_thread(threading.get_ident, 30)) != threading.get_ident()


def test_an_exception_comes_back() -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(in_thread(fail, 30))


def test_a_call_that_hangs_is_left_behind() -> None:
    release = threading.Event()
    with pytest.raises(TimeoutError):
        asyncio.run(in_thread(release.wait, 0.01))
    release.set()  # and its answer to a loop that is closed harms nobody
