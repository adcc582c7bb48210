from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.export.cues import cues
from app.export.validate import validate_file, validate_jsonl, validate_srt, validate_txt, validate_vtt
from app.export.writer import FORMATS, SUFFIXES, ExportError, export, preview
from app.session_record import SessionRecord
from tests.app.captions import record

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
TALK = record(("Good morning.", "Guten Morgen.", 0.5, 1.5), ("Is it <b> & --> ?", "Ist es <b> & --> ?", 2.0, 4.0))


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_format_passes_its_validator(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"talk{suffix}"
    assert export(TALK, path).sentence == f"Wrote {path}."
    assert validate_file(path) == 2


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_fixture_is_what_the_writer_writes_today(suffix: str) -> None:
    path = FIXTURES / f"export{suffix}"
    rows = validate_jsonl((FIXTURES / "export.jsonl").read_text(encoding="utf-8"))
    session = record(*((row.source, row.target, row.start_ms / 1000, row.end_ms / 1000) for row in rows))
    assert FORMATS[suffix](session, "target", 42) == path.read_text(encoding="utf-8")
    assert validate_file(path) >= 4


def test_srt_keeps_markup_literal(tmp_path: Path) -> None:
    text = FORMATS[".srt"](TALK, "target", 42)
    assert text.startswith("1\n00:00:00,500 --> 00:00:01,500\nGuten Morgen.\n\n2\n")
    assert "<b>" not in text
    assert text.count("-->") == 2
    assert "Ist es <b> & --> ?" in text.replace("\u2060", "")


def test_vtt_escapes() -> None:
    assert "Ist es &lt;b&gt; &amp; --&gt; ?" in FORMATS[".vtt"](TALK, "target", 42)


def test_text_in_three_ways() -> None:
    def write(session: SessionRecord, what: str) -> str:
        return FORMATS[".txt"](session, what, 42)

    assert write(TALK, "target") == "Guten Morgen.\nIst es <b> & --> ?\n"
    assert write(TALK, "source") == "Good morning.\nIs it <b> & --> ?\n"
    assert write(TALK, "both") == "Good morning.\nGuten Morgen.\n\nIs it <b> & --> ?\nIst es <b> & --> ?\n"


def test_json_lines_hold_exactly_four_keys() -> None:
    rows = [json.loads(line) for line in FORMATS[".jsonl"](TALK, "source", 42).splitlines()]
    assert rows[0] == {"source": "Good morning.", "target": "Guten Morgen.", "start_ms": 500, "end_ms": 1500}
    assert list(rows[1]) == ["source", "target", "start_ms", "end_ms"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_nothing_said_is_a_valid_file_and_said(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    done = export(SessionRecord("x"), path, "both")
    assert done.empty
    assert "Nothing was said" in done.sentence
    validate_file(path)
    if suffix in (".txt", ".vtt"):
        assert "Nothing was said" in path.read_text()


def test_unknown_suffix_and_text_are_one_sentence(tmp_path: Path) -> None:
    for name in ("a.pdf", "a", ".srt"):
        with pytest.raises(ExportError, match=r"must end in one of \.txt, \.srt, \.vtt, \.jsonl, \.docx\.$"):
            export(TALK, tmp_path / name)
    with pytest.raises(ExportError, match="choose one of source, target, both"):
        export(TALK, tmp_path / "a.srt", "everything")
    assert export(TALK, tmp_path / "A.SRT").path.exists()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ExportError, match="Cannot write"):
        export(TALK, blocked / "a.srt")
    (tmp_path / "folder.srt").mkdir()
    with pytest.raises(ExportError, match="it is a folder"):
        export(TALK, tmp_path / "folder.srt")


def test_a_full_disk_leaves_the_old_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.srt"
    path.write_text("old")

    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.files.os.fsync", full)
    with pytest.raises(ExportError, match="no space left on device"):
        export(TALK, path)
    assert path.read_text() == "old"


CUE = "1\n00:00:00,000 --> 00:00:01,000\nHi\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (CUE.replace("1\n", "2\n", 1), "numbered"),
        (CUE.replace("01,000", "00,500"), "lasts 500 ms"),
        (CUE.replace("01,000", "09,000"), "lasts 9000 ms"),
        (CUE.replace(",000", ",0000"), "no line of times"),
        (CUE + "\n2\n00:00:00,900 --> 00:00:02,000\nHo\n", "before the end"),
        (CUE.replace("Hi", "Hi" * 30), "60 columns"),
        (CUE.replace("Hi", "a\nb\nc"), "3 lines"),
        (CUE.rstrip(), "cut off"),
    ],
)
def test_srt_validator_finds(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        validate_srt(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "WEBVTT\n",
        "x\n",
        "WEBVTT\n\n00:00.000 --> 00:01.000\nHi\n",
        "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n<b>\n",
    ],
)
def test_vtt_validator_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        validate_vtt(text)


ROW = '{"source": "a", "target": "b", "start_ms": 0, "end_ms": 1}\n'


@pytest.mark.parametrize(
    "text",
    [
        ROW.replace(": 1", ": 0"),
        ROW.replace(": 0", ": -1"),
        ROW.replace(": 0", ": 0.5"),
        ROW.replace('"source": "a", ', ""),
        ROW.replace("{", '{"extra": 1, '),
        ROW.replace("{", '{"schema_version": 2, '),
        ROW.replace(": 0", ": 5").replace(": 1", ": 9") + ROW,
        "[]\n",
        "{\n",
        ROW.rstrip(),
    ],
)
def test_jsonl_validator_refuses(text: str) -> None:
    with pytest.raises(ValueError):
        validate_jsonl(text)


def test_validators_accept() -> None:
    assert len(validate_jsonl(ROW.replace("{", '{"schema_version": 1, '))) == 1
    assert validate_srt("") == []
    with pytest.raises(ValueError, match="never empty"):
        validate_txt("")


@pytest.mark.parametrize("columns", [20, 42, 80])
def test_lines_are_as_long_as_asked_and_no_longer(columns: int) -> None:
    words = " ".join(["Wetterbericht", "und", "mehr"] * 20)
    session = record((words, words, 0.0, 30.0))
    lines = [line for cue in cues(session, "target", columns) for line in cue.lines]
    assert max(map(len, lines)) <= columns
    assert max(map(len, lines)) > columns / 2
    assert " ".join(lines) == words


def test_a_byte_order_mark_stands_only_where_it_may(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        path = tmp_path / f"x{suffix}"
        export(TALK, path, byte_order_mark=True)
        assert path.read_bytes().startswith(b"\xef\xbb\xbf") is (suffix in (".txt", ".srt", ".vtt"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_preview_can_be_read(suffix: str) -> None:
    assert "Guten Morgen." in preview(TALK, suffix, "target")
