"""Whether there is a display to open a window on.

Asked before Qt, which aborts the process when there is none.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

_TIMEOUT_S = 2.0
_ADVICE = "start it in a desktop session, or use `surtitle run FILE --headless` in the terminal"


def display_problem(env: Mapping[str, str] | None = None) -> str | None:
    """One sentence when no window can be opened, else None.

    A platform plug-in the user has chosen is trusted.
    """
    env = os.environ if env is None else env
    if sys.platform != "linux" or env.get("QT_QPA_PLATFORM"):
        return None
    wayland, x11 = env.get("WAYLAND_DISPLAY"), env.get("DISPLAY")
    if not wayland and not x11:
        return f"There is no display for the subtitle window: {_ADVICE}."
    if wayland and _connects(str(Path(env.get("XDG_RUNTIME_DIR", "/")) / wayland)):
        return None
    if x11 and _x11_answers(x11):
        return None
    return f"The display '{wayland or x11}' cannot be reached: {_ADVICE}."


def _x11_answers(display: str) -> bool:
    match = re.fullmatch(r"(?:unix)?(?:/.*)?:(\d+)(?:\.\d+)?", display)
    if match:
        name = f"/tmp/.X11-unix/X{match[1]}"
        return _connects(name) or _connects(f"\0{name}")
    match = re.fullmatch(r"([^:/]+):(\d+)(?:\.\d+)?", display)
    if not match:
        return False
    try:
        with socket.create_connection((match[1], 6000 + int(match[2])), _TIMEOUT_S):
            return True
    except OSError:
        return False


def _connects(address: str) -> bool:
    if sys.platform == "win32":
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(_TIMEOUT_S)
        try:
            client.connect(address)
        except (OSError, ValueError):
            return False
        return True
