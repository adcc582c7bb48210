"""Downloads as they are reported, and how fast a preset ran."""

from __future__ import annotations

import os

import pytest

from app.controller import SessionEnded
from app.downloads import Downloads
from app.settings import Speed
from app.speed import SpeedMeter, cpu_seconds
from engine.messages import Activity, DownloadProgress
from tests.app.captions import BEGAN


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_speed_and_time_left() -> None:
    clock = Clock()
    downloads = Downloads(clock)
    told = []
    downloads.changed.subscribe(told.append)
    for second in range(5):
        clock.now_s = float(second)
        downloads.report(DownloadProgress("model", second * 10_000_000, 100_000_000, "running"))
    row = downloads.rows["model"]
    assert row.speed == pytest.approx(10e6)
    assert row.left_s == pytest.approx(6.0)
    assert row.fraction == pytest.approx(0.4)
    assert len(told) == 5
    downloads.report(DownloadProgress("model", 40_000_000, 100_000_000, "paused"))
    assert downloads.rows["model"].left_s is None
    assert downloads.active
    downloads.report(DownloadProgress("model", 100_000_000, 100_000_000, "done"))
    assert downloads.active == []


@pytest.mark.parametrize(("done", "total", "fraction"), [(5, 0, None), (5, -1, None), (200, 100, 1.0), (-5, 100, 0.0)])
def test_odd_reports_do_no_harm(done: int, total: int, fraction: float | None) -> None:
    downloads = Downloads(Clock())
    for _ in range(2):
        downloads.report(DownloadProgress("a\nb", done, total, "running"))
    assert downloads.rows["a\nb"].fraction == fraction
    assert downloads.rows["a\nb"].left_s is None


def test_a_long_session_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter([10.0, 40.0])
    monkeypatch.setattr("app.speed.cpu_seconds", lambda pid: next(spent))
    kept: list[tuple[str, Speed]] = []
    meter = SpeedMeter(lambda: 1, lambda *measured: kept.append(measured))
    meter.event(BEGAN)
    for lag_s in (1.0, 2.0):
        meter.event(Activity(1.0, 1.0, True, lag_s))
    meter.event(Activity(2.0, 2.0, False, 99.0))
    meter.event(SessionEnded(BEGAN.session_id, 60.0, 61.0))
    assert kept == [("laptop", Speed(real_time_factor=0.5, lag_s=1.5))]


@pytest.mark.parametrize(
    ("audio_s", "reason", "pid"), [(5.0, "", os.getpid()), (60.0, "It died.", os.getpid()), (60.0, "", None)]
)
def test_what_says_little_is_not_kept(audio_s: float, reason: str, pid: int | None) -> None:
    kept: list[object] = []
    meter = SpeedMeter(lambda: pid, lambda *measured: kept.append(measured))
    meter.event(BEGAN)
    meter.event(Activity(1.0, 1.0, True, 1.0))
    meter.event(SessionEnded(BEGAN.session_id, audio_s, 60.0, reason))
    assert kept == []


def test_cpu_time_of_a_process() -> None:
    spent = cpu_seconds(os.getpid())
    assert spent is not None
    assert spent > 0
    assert cpu_seconds(2**22 + 1) is None
