from __future__ import annotations

import io

from app.status import Phase, Status
from app.subtitles import Subtitles
from app.terminal import TerminalView
from app.trace import token_line
from tests.app.captions import caption


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def show(out: io.StringIO, err: io.StringIO, *captions: object) -> None:
    view, subtitles = TerminalView(out, err), Subtitles()
    subtitles.changed.subscribe(view.line)
    with view:
        view.status(Status(Phase.LOADING, "the recogniser", 0.25))
        view.status(Status(Phase.LISTENING, audio_s=61.0, quality="demo quality", notices=("The disk is full.",)))
        for item in captions:
            subtitles.apply(item)  # type: ignore[arg-type]


CAPTIONS = (
    caption(0, "Guten", "Good", held=" Morgen", source_tail="morning"),
    caption(0, "Guten Morgen.", "Good morning.", final=True),
    caption(1, "[b]Wie", "How", held=" geht"),
)


def test_a_pipe_gets_each_translation_once_and_nothing_else() -> None:
    out, err = io.StringIO(), io.StringIO()
    show(out, err, *CAPTIONS, caption(2, "", "Hm", final=True))
    assert out.getvalue() == "Guten Morgen.\n[b]Wie\n"
    assert err.getvalue() == "Loading: the recogniser\nThe disk is full.\n"


def test_a_notice_is_said_once_while_it_holds_and_again_when_it_comes_back() -> None:
    err = io.StringIO()
    with TerminalView(io.StringIO(), err) as view:
        for notices in (("A.",), ("A.", "B."), ("B.",), (), ("B.", "C.")):
            view.status(Status(Phase.LISTENING, notices=notices))
    assert err.getvalue() == "A.\nB.\nB.\nC.\n"


def test_a_source_that_is_lost_twice_is_said_twice() -> None:
    err = io.StringIO()
    with TerminalView(io.StringIO(), err) as view:
        for phase in (Phase.LISTENING, *[Phase.SOURCE_LOST] * 2, Phase.LISTENING, Phase.SOURCE_LOST):
            view.status(Status(phase))
    assert err.getvalue() == 2 * f"{Status(Phase.SOURCE_LOST).line}\n"


def test_a_long_translation_stays_one_line_in_a_pipe() -> None:
    out = io.StringIO()
    show(out, io.StringIO(), caption(0, "sehr " * 100, "very", final=True))
    assert out.getvalue().count("\n") == 1


def test_a_terminal_shows_stable_plain_and_held_dim() -> None:
    out = Terminal()
    show(out, Terminal(), *CAPTIONS)
    text = out.getvalue()
    assert "Guten\x1b[2;3m Morgen\x1b[0m" in text
    assert "1:01  Listening  (demo quality)" in text
    assert "\x1b[2mGood morning.\x1b[0m\nGuten Morgen.\n" in text
    assert "The disk is full." in text
    assert text.rindex("[b]Wie") > text.rindex("Guten Morgen.")


def test_the_moving_part_is_on_standard_error_when_output_is_a_file() -> None:
    out, err = io.StringIO(), Terminal()
    show(out, err, *CAPTIONS)
    assert out.getvalue() == "Guten Morgen.\n[b]Wie\n"
    assert "Loading 25%: the recogniser" in err.getvalue()


def test_trace_lines() -> None:
    token = {"text": " Morgen", "released": False, "unit": None, "accessible": 0.25, "inaccessible": None}
    line = token_line({**token, "prompt": 0.5, "suffix": 0.25, "reason": "alignatt:observer_empty"})
    assert line == "  held        –    0.250        –    0.500    0.250  ' Morgen'  [alignatt:observer_empty]"
