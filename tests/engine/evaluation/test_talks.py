"""Talks: the shipped ones, and folders that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.evaluation.talks import (
    SEGMENTS_FILE,
    TalkError,
    calibration_segments,
    held_out_folder,
    load_segments,
    thin_out,
)


def folder(path: Path, talks: int, lines: int | None = None) -> Path:
    rows = [f"- {{wav: t{at}.wav, offset: {at}.5, duration: 1}}" for at in range(talks)]
    (path / SEGMENTS_FILE).write_text("\n".join(rows), encoding="utf-8")
    for language in ("en", "de"):
        text = "".join(f"{language} {at}\n" for at in range(talks if lines is None else lines))
        (path / f"{language}.txt").write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("target", ["de", "it"])
def test_the_shipped_talks_are_whole(target: str) -> None:
    segments = load_segments(held_out_folder(), "en", target)
    assert len(segments) == 216
    assert len({segment.span.talk for segment in segments}) == 5
    assert all(segment.source and segment.reference and segment.span.duration_s > 0 for segment in segments)


def test_the_last_five_talks_are_held_out(tmp_path: Path) -> None:
    segments = load_segments(folder(tmp_path, 7), "en", "de")
    assert [segment.source for segment in calibration_segments(segments)] == ["en 0", "en 1"]
    with pytest.raises(TalkError, match="none is left"):
        calibration_segments(segments[:5])


def test_a_limit_spreads_over_all_talks(tmp_path: Path) -> None:
    segments = load_segments(folder(tmp_path, 8), "en", "de")
    assert [segment.source for segment in thin_out(segments, 4)] == ["en 0", "en 2", "en 4", "en 6"]
    assert thin_out(segments, None) == thin_out(segments, 99) == segments


def test_quotes_of_a_table_are_repaired(tmp_path: Path) -> None:
    folder(tmp_path, 3)
    (tmp_path / "en.txt").write_text('"I read ""it"" now.\n"so it is"\nThank you."\n', encoding="utf-8")
    segments = load_segments(tmp_path, "en", "de")
    assert [segment.source for segment in segments] == ['I read "it" now.', '"so it is"', "Thank you."]


def test_folders_that_do_not_fit_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TalkError, match="cannot be read"):
        load_segments(tmp_path, "en", "de")
    folder(tmp_path, 3, lines=2)
    with pytest.raises(TalkError, match="has 2 lines, but"):
        load_segments(tmp_path, "en", "de")
    with pytest.raises(TalkError, match="do not cover 'fr'"):
        load_segments(folder(tmp_path, 3), "en", "fr")
