"""`surtitle calibrate` from pairs to a head set, on a model by script."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.alignatt.heads import head_set_from_json
from engine.calibration import calibrate
from engine.mt.contract import Source, TranslationError


class Model:
    """Four heads over words: the last one looks at the word of the same place, the others at the first word."""

    heads = ((0, 0), (0, 1), (1, 0), (1, 1))
    geometry = (2, 2)
    layout_id = "few_shot-1"
    architecture = "scripted"

    def __init__(self, room: int = 99) -> None:
        self._room = room
        self._words: list[str] = []

    def encode_target(self, text: str) -> list[int]:
        self._words = text.split()
        return list(range(len(self._words)))

    def pieces(self, ids: Sequence[int]) -> tuple[bytes, ...]:
        return tuple(f" {self._words[at]}".encode() for at in ids)

    def teacher_force(self, source: Source, target_ids: Sequence[int], query_row: str) -> NDArray[np.float32]:
        if len(target_ids) > self._room:
            raise TranslationError("It does not fit.")
        rows = np.zeros((4, len(target_ids), len(source.units)), np.float32)
        rows[:3, :, 0] = 1
        rows[3, np.arange(len(target_ids)), np.arange(len(target_ids))] = 1
        return rows


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, model: Model, output: Path) -> int:
    rows = []
    for at in range(20):
        words = [f"a{at}", f"b{at}", f"c{at}"]
        sides = {"source_text": " ".join(words), "target_text": " ".join(word.upper() for word in words)}
        split = {"source_words": words, "target_words": [word.upper() for word in words]}
        rows.append(json.dumps({**sides, **split, "alignments": [[i, i + 1, i, i + 1] for i in range(3)]}))
    pairs = folder / "pairs.jsonl"
    pairs.write_text("\n".join(rows), encoding="utf-8")
    monkeypatch.setattr(calibrate, "open_model", lambda *_: model)
    parser = argparse.ArgumentParser()
    calibrate.add_arguments(parser)
    words = ["scripted", "--pairs", str(pairs), "--direction", "en-de", "--output", str(output)]
    return calibrate.run(parser.parse_args([*words, "--report", str(folder / "report.json")]))


def test_the_head_that_follows_the_words_is_found_and_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run(monkeypatch, tmp_path, Model(), tmp_path / "heads.json") == 0
    found = head_set_from_json(json.loads((tmp_path / "heads.json").read_text(encoding="utf-8")), "heads.json")
    assert (found.heads[0].layer, found.heads[0].head, found.heads[0].score) == (1, 1, 1.0)
    assert [head.score for head in found.heads[1:]] == [0.333] * 3
    assert (found.layers, found.query_heads, found.pairs) == (2, 2, 20)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert report["top4_held_out"] == 0.5
    assert report["aligned_tokens"] == 60


def test_pairs_that_do_not_fit_are_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, tmp_path, Model(room=2), tmp_path / "heads.json") == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("The pairs hold no aligned tokens")


def test_a_result_that_cannot_be_written_is_one_sentence_and_the_other_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert run(monkeypatch, tmp_path, Model(), tmp_path / "file" / "heads.json") == 2
    assert "cannot be written" in capsys.readouterr().err.splitlines()[-1]
    assert (tmp_path / "report.json").is_file()
