"""A machine to run the real program on: a screen, a microphone and the processes the program started."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

SETTLE_S = 0.05


def wait_for(condition: Callable[[], object], timeout_s: float, what: str) -> None:
    """Poll until the condition holds. Raises `AssertionError` naming what did not happen."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"Not within {timeout_s} s: {what}.")
        time.sleep(SETTLE_S)


@contextmanager
def screen(size: str = "1280x800x24") -> Iterator[dict[str, str]]:
    """A real X server without a monitor; yields the environment that leads to it."""
    read, write = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(write), "-screen", "0", size, "-nolisten", "tcp"],
        pass_fds=[write],
        stderr=subprocess.DEVNULL,
    )
    os.close(write)
    try:
        with os.fdopen(read) as pipe:
            number = pipe.readline().strip()
        assert number, "Xvfb did not start"
        yield {"DISPLAY": f":{number}", "QT_QPA_PLATFORM": "xcb", "WAYLAND_DISPLAY": ""}
    finally:
        server.terminate()
        server.wait(10)


class Microphone:
    """A sound server of our own whose null sink is heard as the default input; `play` speaks into it.

    PortAudio finds it through ALSA's pulse plug-in. `norewinds` keeps the monitor from repeating samples.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        socket = folder / "native"
        self.environment = {
            "PULSE_SERVER": f"unix:{socket}",
            "XDG_RUNTIME_DIR": str(folder),
            "PULSE_RUNTIME_PATH": str(folder / "pulse"),
        }
        self._server = subprocess.Popen(
            [
                *("pulseaudio", "-n", "--daemonize=no", "--exit-idle-time=-1", "--disallow-exit=yes"),
                *("--use-pid-file=no", "--high-priority=no", "--realtime=no", f"--log-target=file:{folder}/log"),
                *("-L", f"module-native-protocol-unix socket={socket} auth-anonymous=1"),
                *("-L", "module-null-sink sink_name=voice norewinds=1 rate=48000 channels=2 format=s16le"),
            ],
            env={**os.environ, **self.environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_for(lambda: self._control("info") == 0, 20, "the sound server answers")
        assert self._control("set-default-sink", "voice") == 0
        assert self._control("set-default-source", "voice.monitor") == 0

    def play(self, recording: Path) -> subprocess.Popen[bytes]:
        """Speak a recording at its own pace; returns at once."""
        return subprocess.Popen(["paplay", "--device=voice", str(recording)], env={**os.environ, **self.environment})

    def listened_to(self) -> bool:
        """Whether a program records at this moment."""
        listing = subprocess.run(
            ["pactl", "list", "short", "source-outputs"],
            env={**os.environ, **self.environment},
            capture_output=True,
            check=False,
        )
        return bool(listing.stdout.strip())

    def close(self) -> None:
        """End the sound server."""
        self._server.terminate()
        self._server.wait(10)

    def _control(self, *words: str) -> int:
        command = ["pactl", *words]
        environment = {**os.environ, **self.environment}
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode


@contextmanager
def microphone() -> Iterator[Microphone]:
    """A microphone for the time of a test. Its folder is short: a socket's path may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="mic") as folder:
        voice = Microphone(Path(folder))
        try:
            yield voice
        finally:
            voice.close()


def engine_of(pid: int) -> psutil.Process | None:
    """The engine process of a running program, the leader of its own process group."""
    for child in psutil.Process(pid).children(recursive=True):
        try:
            if "spawn_main" in " ".join(child.cmdline()) and os.getpgid(child.pid) == child.pid:
                return child
        except (psutil.Error, ProcessLookupError):
            continue
    return None


def group_is_gone(leader: int) -> bool:
    """Whether no process of a group is left."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    members = [process for process in psutil.process_iter() if _group_of(process.pid) == leader]
    return all(process.status() == psutil.STATUS_ZOMBIE for process in members)


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def end(process: subprocess.Popen[bytes]) -> None:
    """Leave nothing behind after a test, whatever happened in it."""
    if process.poll() is None:
        engine = engine_of(process.pid)
        process.kill()
        process.wait(10)
        if engine is not None:
            with suppress(ProcessLookupError):
                os.killpg(engine.pid, signal.SIGKILL)
