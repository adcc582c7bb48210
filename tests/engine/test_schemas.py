from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.schemas import (
    CaptionLine,
    EndLine,
    ErrorLine,
    HealthLine,
    LogError,
    SessionLine,
    log_line_to_json,
    read_log,
)

FIXTURE = Path(__file__).resolve().parents[1] / "fixtures" / "session_log.jsonl"


def rows() -> list[dict[str, Any]]:
    return [json.loads(row) for row in FIXTURE.read_text(encoding="utf-8").splitlines()]


def write(path: Path, data: list[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")
    return path


def test_the_fixture_is_valid_and_survives_a_round_trip() -> None:
    lines = read_log(FIXTURE)
    kinds = [type(line) for line in lines]
    assert kinds == [SessionLine, CaptionLine, HealthLine, CaptionLine, ErrorLine, CaptionLine, EndLine]
    assert "".join(log_line_to_json(line) + "\n" for line in lines) == FIXTURE.read_text(encoding="utf-8")


def test_a_killed_writer_leaves_a_readable_log(tmp_path: Path) -> None:
    whole = FIXTURE.read_bytes()
    path = tmp_path / "log.jsonl"
    path.write_bytes(whole[:-20])
    assert len(read_log(path)) == 6
    path.write_bytes(whole[:-1])
    assert len(read_log(path)) == 7


def change(number: int, **values: Any) -> list[dict[str, Any]]:
    data = rows()
    data[number].update(values)
    return data


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ([], "is empty"),
        (rows()[1:], "begins with it"),
        ([rows()[0], *rows()], "begins with it"),
        ([*rows(), rows()[2]], "nothing may follow"),
        (change(3, seq=5), "caption 5 where 1 was expected"),
        (change(5, stable="Anders"), "stable text of utterance 0 was changed"),
        (change(1, schema_version=2), "schema version 2"),
        (change(1, extra=1), "at 'caption.extra'"),
        (change(1, emitted_s="soon"), "at 'caption.emitted_s'"),
        (change(1, type="gossip"), "gossip"),
        (change(1, tokens=[{"text": "a"}]), "tokens.0"),
        ([[], *rows()], "lacks 'schema_version'"),
    ],
)
def test_what_is_wrong_is_named(data: list[Any], problem: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match=problem):
        read_log(write(tmp_path / "log.jsonl", data))


def test_a_file_that_is_no_log(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be read"):
        read_log(tmp_path / "none")
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\xff\xfe\n{}\n")
    with pytest.raises(LogError, match="cannot be read"):
        read_log(path)
    path.write_text("{}\nnot json\n{}\n")
    with pytest.raises(LogError):
        read_log(path)
