"""`surtitle benchmark window`: how quick the window is, and whether it stays so.

- cold start: from the start of a new process, as the person starts it, to the first painted frame of the window;
- event to painted: from the moment a caption reaches the app to the end of the painting that shows it, with 3,000
  finished lines behind it and the transcript being written, as in a session;
- 100,000 events: time of an event and memory of the process, at the beginning and at the end;
- idle: CPU time of a window that is open with text on it, and of one that shows a session in which nobody speaks.

Without a display Qt's offscreen platform is used, which paints the same pixels and shows them to nobody.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import psutil

from app.command_line import Parser
from app.display import display_problem
from engine.messages import Activity, Caption

HISTORY = 3_000
EVENTS = 100_000
MEASURED = 3_000  # events whose painting is waited for
IDLE_S = 5.0
STARTS = 5
WORDS = "heute reden wir über das Wetter von morgen und darüber wie man es vorhersagt ohne zu raten".split()
UTTERANCE = 14  # words
MIB = 2**20
MARK = "painted "
HEARTBEATS_HZ = 10


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured; times in milliseconds, memory in MiB, CPU in per cent of one core."""

    platform: str
    cold_start_ms: list[float]
    cold_start_cpu_ms: list[float]
    painted_p50_ms: float
    painted_p99_ms: float
    painted_cpu_p99_ms: float
    painted_max_ms: float
    event_first_ms: float
    event_last_ms: float
    memory_first_mib: float
    memory_last_mib: float
    idle_cpu: float
    listening_cpu: float


def main(words: Sequence[str]) -> int:
    """Run the command line; the exit status: 0, or 1 when a bar is not held and `--check` was given."""
    parser = Parser("surtitle benchmark window", description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=EVENTS, help=f"events of the long run (default {EVENTS})")
    parser.add_argument("--starts", type=int, default=STARTS, help=f"cold starts (default {STARTS})")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the figures there, too")
    parser.add_argument("--check", action="store_true", help="exit status 1 when a bar is not held")
    parser.add_argument("--first-paint", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.first_paint:
        return _first_paint()
    if display_problem():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    figures = measure(args.events, args.starts)
    if args.json:
        args.json.write_text(json.dumps(asdict(figures), indent=2) + "\n", encoding="utf-8")
    return _report(figures, args.check)


def _report(figures: Figures, check: bool) -> int:
    rows = (
        ("cold start to first frame, median", median(figures.cold_start_ms), "ms", 1000.0),
        ("  of it CPU time of this process", median(figures.cold_start_cpu_ms), "ms", None),
        ("event to painted text, p50", figures.painted_p50_ms, "ms", None),
        ("event to painted text, p99", figures.painted_p99_ms, "ms", 16.0),
        ("  the same in CPU time, p99", figures.painted_cpu_p99_ms, "ms", None),
        ("event to painted text, longest", figures.painted_max_ms, "ms", None),
        ("an event, at the beginning", figures.event_first_ms, "ms", None),
        ("an event, at the end", figures.event_last_ms, "ms", 1.5 * figures.event_first_ms + 0.05),
        ("memory, after 10 % of the events", figures.memory_first_mib, "MiB", None),
        ("memory, at the end", figures.memory_last_mib, "MiB", figures.memory_first_mib + 40),
        ("CPU, window open", figures.idle_cpu, "%", 2.0),
        ("CPU, listening to silence", figures.listening_cpu, "%", 2.0),
    )
    print(f"{figures.platform}")
    held = True
    for name, value, unit, bar in rows:
        verdict = "" if bar is None else f"  (bar {bar:.1f} {unit}: {'held' if value <= bar else 'NOT HELD'})"
        held = held and (bar is None or value <= bar)
        print(f"{name:36} {value:9.2f} {unit}{verdict}")
    return 0 if held or not check else 1


# ---------------------------------------------------------------- the measurements


def measure(events: int = EVENTS, starts: int = STARTS) -> Figures:
    """All of it. Opens a window."""
    cold = [cold_start_ms() for _ in range(max(1, starts))]
    from PySide6.QtWidgets import QApplication  # after the platform has been chosen

    application = QApplication.instance() or QApplication(["surtitle"])
    assert isinstance(application, QApplication)
    with tempfile.TemporaryDirectory() as folder:
        rig = _Rig(Path(folder))
        try:
            painted, cpu = rig.painted_ms(MEASURED)
            first, last, memory_first, memory_last = rig.long_run(events)
            idle, listening = rig.idle_cpu(heartbeats=False), rig.idle_cpu(heartbeats=True)
        finally:
            rig.close()
    painted.sort()
    cpu.sort()
    name = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Qt platform {application.platformName()}"
    return Figures(
        platform=f"{name}, load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else name,
        cold_start_ms=[wall for wall, _ in cold],
        cold_start_cpu_ms=[used for _, used in cold],
        painted_p50_ms=painted[len(painted) // 2],
        painted_p99_ms=painted[int(0.99 * len(painted))],
        painted_cpu_p99_ms=cpu[int(0.99 * len(cpu))],
        painted_max_ms=painted[-1],
        event_first_ms=first,
        event_last_ms=last,
        memory_first_mib=memory_first,
        memory_last_mib=memory_last,
        idle_cpu=idle,
        listening_cpu=listening,
    )


def cold_start_ms() -> tuple[float, float]:
    """From the start of a process to its first painted frame, and the CPU time of it. The clock is the machine's, the
    same for both processes.
    """
    began_s = time.monotonic()
    command = [sys.executable, "-P", "-m", "app.benchmark_window", "--first-paint"]
    root = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryDirectory() as folder:
        homes = {f"XDG_{name}_HOME": folder for name in ("CONFIG", "DATA", "STATE")}
        environment = {**os.environ, **homes, "PYTHONPATH": root}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            painted_s, cpu_s = map(float, line.removeprefix(MARK).split())
            return 1000 * (painted_s - began_s), 1000 * cpu_s
    raise RuntimeError(f"The window did not open: {done.stderr.strip()[-500:]}")


def _first_paint() -> int:
    """The program as it is, which says when it has painted and then leaves."""
    from app.commands.run import open_window

    if display_problem():
        os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtGui import QPaintEvent

    from app.widgets.subtitle_window import SubtitleWindow

    paint = SubtitleWindow.paintEvent

    def painted(window: SubtitleWindow, event: QPaintEvent) -> None:
        paint(window, event)
        print(f"{MARK}{time.monotonic()} {time.process_time()}", flush=True)
        window.leave.emit()

    SubtitleWindow.paintEvent = painted  # type: ignore[method-assign, assignment]
    return open_window()


class _Rig:
    """A window with a model, a transcript and a status, driven as the controller drives them."""

    def __init__(self, folder: Path) -> None:
        from app.subtitles import Subtitles
        from app.transcript import Transcript
        from app.widgets.subtitle_window import SubtitleWindow

        self._subtitles, self._transcript = Subtitles(), Transcript(folder)
        self._window = SubtitleWindow(self._subtitles, "Surtitle")
        self._captions = _talk()
        self._begin()
        self._window.show()
        self._settle()

    def close(self) -> None:
        self._window.detach()
        self._window.hide()
        self._transcript.close()

    def _begin(self) -> None:
        from app.controller import SessionBegan

        self._transcript.event(SessionBegan("0" * 32, "laptop", "en", "de", "benchmark", "", time.time()))
        self._subtitles.begin()

    def _event(self) -> None:
        """One caption, on all the ways it takes."""
        caption = next(self._captions)
        if self._subtitles.apply(caption):
            self._transcript.event(caption)

    def painted_ms(self, count: int) -> tuple[list[float], list[float]]:
        """Milliseconds from a caption to the end of the painting that shows it, by the clock and in CPU time."""
        from PySide6.QtWidgets import QApplication

        finals = 0
        while finals < HISTORY:
            caption = next(self._captions)
            if self._subtitles.apply(caption):
                self._transcript.event(caption)
            finals += caption.final
        self._settle()
        times, used = [], []
        for _ in range(count):
            began_s, began_cpu_s = time.perf_counter(), time.thread_time()
            self._event()
            QApplication.sendPostedEvents()
            QApplication.processEvents()
            times.append(1000 * (time.perf_counter() - began_s))
            used.append(1000 * (time.thread_time() - began_cpu_s))
        return times, used

    def long_run(self, events: int) -> tuple[float, float, float, float]:
        """Milliseconds of an event in the first and the last tenth, MiB after the first tenth and at the end."""
        from PySide6.QtWidgets import QApplication

        process, tenth = psutil.Process(), max(1, events // 10)
        first_ms = last_ms = memory_first = 0.0
        for part in range(10):
            began_s = time.process_time()
            for number in range(tenth):
                self._event()
                if number % 10 == 0:
                    QApplication.processEvents()
            last_ms = 1000 * (time.process_time() - began_s) / tenth
            if part == 0:
                first_ms = last_ms
                gc.collect()
                memory_first = process.memory_info().rss / MIB
        gc.collect()
        return first_ms, last_ms, memory_first, process.memory_info().rss / MIB

    def idle_cpu(self, heartbeats: bool) -> float:
        """Per cent of a core that the open window takes; with `heartbeats`, in a session in which nobody speaks."""
        from PySide6.QtCore import QEventLoop, QTimer

        from app.status import Phase, Status

        self._window.show_status(Status(Phase.LISTENING if heartbeats else Phase.READY))
        self._settle()
        beat, loop = QTimer(), QEventLoop()
        clock = Activity(0.0, 0.0, False, 0.0)
        if heartbeats:
            beat.timeout.connect(
                lambda: self._window.show_status(Status(Phase.LISTENING, lag_s=clock.lag_s, audio_s=time.monotonic()))
            )
            beat.timeout.connect(lambda: self._window.show_level(0.01 + 0.001 * (time.monotonic() % 1)))
            beat.start(1000 // HEARTBEATS_HZ)
        QTimer.singleShot(round(1000 * IDLE_S), loop.quit)
        began_cpu_s, began_s = time.process_time(), time.monotonic()
        loop.exec()
        beat.stop()
        return 100 * (time.process_time() - began_cpu_s) / (time.monotonic() - began_s)

    def _settle(self, seconds: float = 0.3) -> None:
        from PySide6.QtWidgets import QApplication

        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            QApplication.processEvents()
            time.sleep(0.005)


def _talk() -> Iterator[Caption]:
    """Captions without end: words become stable one by one, two more are held, every utterance ends."""
    utterance = 0
    while True:
        words = [WORDS[(utterance * 5 + n) % len(WORDS)] for n in range(UTTERANCE)]
        for count in range(1, UTTERANCE + 1):
            final = count == UTTERANCE
            at_s = (utterance * UTTERANCE + count) * 0.3
            yield Caption(
                utterance_id=utterance,
                stable=" ".join(words[:count]),
                held="" if final else "".join(f" {word}" for word in words[count : count + 2]),
                source_stable=" ".join(words[:count]),
                source_tail="",
                covered_source_units=count,
                final=final,
                reason="stop" if final else "alignatt:source_frontier",
                start_s=utterance * UTTERANCE * 0.3,
                end_s=at_s,
                audio_s=at_s,
                emitted_s=at_s,
            )
        utterance += 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
