"""The subtitles in a terminal: stable text normal, held text dim, the speaker's words dim above, the state below.

Where standard output is no terminal, each final translation is one plain line on it and nothing else is.
"""

from __future__ import annotations

from typing import Any, TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from app.status import Phase, Status
from app.subtitles import Line

MAX_OPEN_LINES = 3


class TerminalView:
    """Shows one controller's subtitles and status. Give it every change; use it as a context manager.

    The moving part is on standard output if that is a terminal, else on standard error if that is one, else
    there is none and states are plain lines on standard error.
    """

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out_is_terminal = out.isatty()
        self._out = Console(file=out, highlight=False, soft_wrap=not self._out_is_terminal)
        self._err = Console(file=err, highlight=False, soft_wrap=True)
        self._live: Live | None = None
        if self._out_is_terminal or err.isatty():
            console = self._out if self._out_is_terminal else self._err
            self._live = Live(
                console=console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
        self._open: dict[tuple[int, int], Line] = {}
        self._done: set[tuple[int, int]] = set()
        self._status = Status()
        self._said: set[str] = set()
        self._told = ""  # the state that was printed last, while it lasts

    def __enter__(self) -> TerminalView:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Leave the terminal in order; what is stable of an open utterance is printed and stays."""
        for line in list(self._open.values()):
            self._print(line)
        self._open.clear()
        if self._live:
            self._live.update(Text(""), refresh=True)
            self._live.stop()

    # ------------------------------------------------------------ what it is told

    def line(self, line: Line | None) -> None:
        """An utterance has changed; None: what was held has gone."""
        if line is None:
            for key, old in list(self._open.items()):
                self._open[key] = Line(key, old.stable, "", old.source_stable, "", False)
        elif line.key in self._done:
            return
        elif line.final:
            self._open.pop(line.key, None)
            self._refresh(draw=False)  # printing above the moving part draws it again
            self._print(line)
            return
        else:
            self._open[line.key] = line
        self._refresh()

    def status(self, status: Status) -> None:
        """The state has changed."""
        before, self._status = self._status.notices, status
        self._said.difference_update(set(before) - set(status.notices))  # what comes back is said again
        for notice in status.notices:
            self.say(notice)
        if self._live:
            self._refresh()
            return
        told, self._told = self._told, ""
        if status.phase in (Phase.LOADING, Phase.READY, Phase.STOPPING, Phase.SOURCE_LOST):
            self._told = f"Loading: {status.text}" if status.phase is Phase.LOADING else status.line
            if self._told != told:
                self._err.print(Text(self._told))

    def say(self, sentence: str) -> None:
        """A sentence for the person, on standard error, above whatever moves; once, as long as it holds."""
        if sentence in self._said:
            return
        self._said.add(sentence)
        shared = self._live and self._out_is_terminal and self._err.is_terminal
        (self._out if shared else self._err).print(Text(sentence))

    # ------------------------------------------------------------ how it looks

    def _print(self, line: Line) -> None:
        """An utterance that will not change any more: above the moving part, for good."""
        self._done.add(line.key)
        if self._out_is_terminal:
            both = (Text(line.source_stable, style="dim"), Text(line.stable.strip()))
            if texts := [text for text in both if text]:
                self._out.print(*texts, sep="\n")
        elif line.stable.strip():
            self._out.print(Text(" ".join(line.stable.split())))
            self._out.file.flush()

    def _refresh(self, draw: bool = True) -> None:
        if self._live:
            rows: list[Any] = []
            for line in list(self._open.values())[-MAX_OPEN_LINES:]:
                rows.append(Text.assemble(*((run.text, "dim") for run in line.source_runs)))
                rows.append(Text.assemble(*((run.text, "dim italic" if run.held else "") for run in line.runs)))
            rows.append(Text(f"— {self._state()}", style="dim"))
            self._live.update(Group(*rows), refresh=draw)

    def _state(self) -> str:
        status = self._status
        clock = ""
        if status.phase.running:
            minutes, seconds = divmod(int(status.audio_s), 60)
            clock = f"{minutes}:{seconds:02}  "
        label = f"  ({status.quality})" if status.quality else ""
        return f"{clock}{status.line}{label}"
