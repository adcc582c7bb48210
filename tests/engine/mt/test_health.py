"""Health of attention rows: told by the newest ones, so that it recovers."""

from __future__ import annotations

import pytest

from engine.mt.contract import UNHEALTHY_AFTER_ROWS, WINDOW_ROWS, CaptureHealth

GOOD, BAD = [False] * 10, [True] * 10


def test_counters_go_on_and_the_rate_is_that_of_the_newest_rows() -> None:
    health = CaptureHealth()
    health.count([True, False, False], [False, True, False])
    assert (health.rows_expected, health.rows_missing, health.rows_nonfinite) == (3, 1, 1)
    assert health.bad_rate == pytest.approx(2 / 3)
    for _ in range(WINDOW_ROWS // 10):
        health.count(GOOD, GOOD)
    assert (health.rows_expected, health.rows_missing, health.bad_rate) == (3 + WINDOW_ROWS, 1, 0)


def test_bad_rows_make_it_unhealthy_and_good_ones_well_again() -> None:
    health = CaptureHealth()
    for _ in range(UNHEALTHY_AFTER_ROWS // 10 - 1):
        health.count(BAD, GOOD)
    assert health.ok, "a few rows prove nothing"
    health.count(GOOD, BAD)
    assert not health.ok
    for _ in range(WINDOW_ROWS // 10):
        health.count(GOOD, GOOD)
    assert health.ok


def test_a_failed_self_test_does_not_wear_off() -> None:
    health = CaptureHealth(self_test="failed")
    for _ in range(WINDOW_ROWS // 10):
        health.count(GOOD, GOOD)
    assert not health.ok
