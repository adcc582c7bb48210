"""The attention picture: which caption it shows, and what it says when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.__main__ import main
from engine.evaluation.picture import PictureError, choose
from engine.schemas import CaptionLine, SessionLine, Token, log_line_to_json


def token(text: str, row: tuple[float | None, ...] = (0.1, 0.4, None)) -> Token:
    return Token(
        text=text, released=True, unit=1, accessible=0.5, inaccessible=0.0, prompt=0.3, suffix=0.2, reason="", row=row
    )


def caption(seq: int, utterance_id: int, tokens: tuple[Token, ...] | None, *, final: bool = False) -> CaptionLine:
    return CaptionLine(
        seq=seq,
        utterance_id=utterance_id,
        stable="",
        held="",
        source_stable="we go",
        source_tail="" if final else "home",
        covered_source_units=None,
        final=final,
        reason="stop",
        audio_s=1.0,
        emitted_s=1.0,
        lag_s=None,
        stages={},
        tokens=tokens,
    )


SESSION = SessionLine(
    preset="laptop",
    source_lang="en",
    target_lang="de",
    model="m",
    head_set="h",
    policy={},
    capture_mode="x",
    versions={},
)
CAPTIONS = [
    caption(0, 0, (token(" wir"), token(" gehen"))),
    caption(1, 0, (token(" wir"), token(" gehen"), token(" heim")), final=True),
    caption(2, 1, (token(" ja"),)),
    caption(3, 1, None),
]


def test_the_longest_open_draft_is_shown() -> None:
    assert choose(CAPTIONS, None).seq == 0
    assert choose(CAPTIONS, 1).seq == 2


def test_without_a_trace_there_is_nothing_to_draw() -> None:
    with pytest.raises(PictureError, match="no traced caption of utterance 7"):
        choose(CAPTIONS, 7)
    with pytest.raises(PictureError, match="run the session with --trace"):
        choose(CAPTIONS[3:], None)


def test_a_picture_is_written(tmp_path: Path) -> None:
    log, picture = tmp_path / "log.jsonl", tmp_path / "out" / "trace.png"
    log.write_text("".join(log_line_to_json(line) + "\n" for line in (SESSION, *CAPTIONS)), encoding="utf-8")
    assert main(["trace-plot", str(log), "--output", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace-plot", str(tmp_path / "none"), "--output", str(tmp_path / "x.png")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
