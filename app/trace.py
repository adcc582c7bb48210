"""The decision on every draft token as lines of text, for `--trace`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from app.controller import Recorded
from engine.messages import Caption


class Trace:
    """Recorder that says each traced caption's tokens: released or held, the unit looked at, the masses, the reason."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def event(self, event: Recorded) -> None:
        """Take what the controller tells."""
        if isinstance(event, Caption) and event.tokens:
            lines = [f"utterance {event.utterance_id} at {event.emitted_s:.1f} s: {event.reason}"]
            lines.append("           unit  access inaccess   prompt   suffix  token")
            self._say("\n".join([*lines, *map(token_line, event.tokens)]))


def token_line(token: dict[str, Any]) -> str:
    """One token of a trace, in columns; a mass that is missing is a dash."""
    masses = (token[name] for name in ("accessible", "inaccessible", "prompt", "suffix"))
    columns = "".join(f"{mass:9.3f}" if mass is not None else f"{'–':>9}" for mass in masses)
    unit = "–" if token["unit"] is None else token["unit"]
    state = "released" if token["released"] else "held"
    reason = f"  [{token['reason']}]" if token["reason"] else ""
    return f"  {state:8} {unit:>4}{columns}  {token['text']!r}{reason}"
