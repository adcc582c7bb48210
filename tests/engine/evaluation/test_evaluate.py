"""Scores of hand-made logs, and what is refused."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from engine.evaluation import evaluate
from engine.evaluation.scores import load_log, score
from engine.evaluation.talks import SpokenSpan
from engine.schemas import EndLine, LogLine
from tests.engine.evaluation.helpers import caption, one_utterance, session_line, write

REFERENCE = "Das ist ein Satz."


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    parser = argparse.ArgumentParser()
    evaluate.add_arguments(parser)
    status = evaluate.run(parser.parse_args(words))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def refused(capsys: pytest.CaptureFixture[str], log: Path, reference: str = REFERENCE) -> str:
    """The one sentence with which a log is refused."""
    file = log.with_suffix(".reference")
    file.write_text(reference + "\n", encoding="utf-8")
    status, out, err = run(capsys, str(log), "--reference", str(file))
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert err.endswith(".\n")
    return err


def test_latency_equals_the_value_computed_by_hand(tmp_path: Path) -> None:
    scores = score([load_log(write(tmp_path / "log", one_utterance()))], [REFERENCE])
    # 4 words in 2 s: the ideal lag grows by 0.5 s a word; the third word is the last that counts, it comes at 2 s
    assert scores.latency.laal_cu_s == pytest.approx(((1.0 - 0.0) + (1.0 - 0.5) + (2.0 - 1.0)) / 3)
    # with computation each comes 0.5 s later, and the third is past the end as well
    assert scores.latency.laal_ca_s == pytest.approx(((1.5 - 0.0) + (1.5 - 0.5) + (2.5 - 1.0)) / 3)
    # the long form counts what is emitted before the recording ends at 2 s
    assert scores.latency.long_yaal_cu_s == pytest.approx(((1.0 - 0.0) + (1.0 - 0.5)) / 2)
    assert scores.quality.bleu == pytest.approx(100.0)
    assert scores.quality.chrf == pytest.approx(100.0)


def test_conduct_of_a_session(tmp_path: Path) -> None:
    conduct = score([load_log(write(tmp_path / "log", one_utterance()))], [REFERENCE]).conduct
    assert (conduct.utterances, conduct.captions, conduct.target_units) == (1, 4, 4)
    assert conduct.erasure == 0.0
    assert conduct.stable_before_final == pytest.approx(0.75)
    assert conduct.releases_on_commit == 1
    assert conduct.real_time_factor == pytest.approx(4 * 0.5 / 2.5)
    assert conduct.wall_factor == pytest.approx(2.0)


def test_erasure_is_found_where_stable_text_was_rewritten(tmp_path: Path) -> None:
    log: list[LogLine] = [
        session_line(),
        caption(0, "Das war", 1.0),
        caption(1, "Das ist ein", 2.0),
        caption(2, "Das ist ein Satz.", 2.5, final=True),
    ]
    conduct = score([load_log(write(tmp_path / "log", log))], [REFERENCE]).conduct
    assert conduct.erasure == pytest.approx(1 / 4)


def test_held_text_that_changes_is_no_erasure_of_stable_text(tmp_path: Path) -> None:
    log: list[LogLine] = [
        session_line(),
        caption(0, "Das", 1.0, held=" war"),
        caption(1, "Das ist", 2.0, final=True),
    ]
    conduct = score([load_log(write(tmp_path / "log", log))], [REFERENCE]).conduct
    assert (conduct.erasure, conduct.held_erasure) == (0.0, pytest.approx(1 / 2))


def test_a_log_without_audio_times_uses_its_newest_words(tmp_path: Path) -> None:
    line = caption(0, "Das", 3.0, audio_s=1.5, final=True).model_copy(update={"clock_s": None})
    log: list[LogLine] = [session_line(), line]
    assert score([load_log(write(tmp_path / "log", log))], ["Das"]).latency.laal_cu_s == pytest.approx(1.5)


def test_segments_with_other_borders_than_the_utterances_are_aligned(tmp_path: Path) -> None:
    log: list[LogLine] = [
        session_line(),
        caption(0, "Guten Tag.", 1.0, start_s=0.0, end_s=1.0, audio_s=1.0),
        caption(1, "Guten Tag. Das Wetter ist schön.", 3.0, start_s=0.0, end_s=3.0, audio_s=3.0, final=True),
    ]
    spans = [SpokenSpan("talk", 0.0, 1.0), SpokenSpan("talk", 1.0, 2.0)]
    scores = score([load_log(write(tmp_path / "log", log))], ["Guten Tag!", "Das Wetter ist schön!"], spans)
    assert scores.segments == 2
    assert scores.latency.laal_cu_s == pytest.approx((1.0 + 2.0) / 2)
    assert scores.quality.chrf > 80


def test_several_logs_are_parts_of_one_reference(tmp_path: Path) -> None:
    logs = [load_log(write(tmp_path / name, one_utterance())) for name in ("a", "b")]
    scores = score(logs, [REFERENCE, REFERENCE])
    assert (scores.segments, scores.conduct.target_units) == (2, 8)
    assert scores.latency.laal_cu_s == pytest.approx(2.5 / 3)


def test_chinese_is_scored_in_characters(tmp_path: Path) -> None:
    log: list[LogLine] = [session_line(target_lang="zh"), caption(0, "你好世界", 1.0, final=True)]
    scores = score([load_log(write(tmp_path / "log", log))], ["你好世界"])
    assert "tok:zh" in scores.quality.bleu_signature
    assert scores.conduct.target_units == 4
    assert scores.latency.laal_cu_s == pytest.approx((1.0 + 0.5 + 0.0 - 0.5) / 4)


def test_json_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, reference = write(tmp_path / "log", one_utterance()), tmp_path / "de.txt"
    reference.write_text(REFERENCE + "\n", encoding="utf-8")
    status, out, _ = run(capsys, str(log), "--reference", str(reference), "--json")
    assert status == 0
    assert json.loads(out)["laal_cu_s"] == pytest.approx(2.5 / 3)
    status, out, _ = run(capsys, str(log), "--reference", str(reference))
    assert status == 0
    assert "0.83 / 1.33 s" in out
    assert "75.0 %" in out


@pytest.mark.parametrize("mode", ["FULL", "PIECEWISE/not run", "FULL_AND_PIECEWISE/failed", "cb_eval", "eager/failed"])
def test_unverified_capture_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str) -> None:
    log = [session_line(capture_mode=mode, info={}), *one_utterance()[1:]]
    assert "self-test" in refused(capsys, write(tmp_path / "log", log))


@pytest.mark.parametrize(
    ("mode", "info"), [("eager", {}), ("FULL/passed", {}), ("FULL", {"self_test": "passed"}), ("hf_eager", {})]
)
def test_verified_capture_is_scored(tmp_path: Path, mode: str, info: dict[str, str]) -> None:
    log = [session_line(capture_mode=mode, info=info), *one_utterance()[1:]]
    assert score([load_log(write(tmp_path / "log", log))], [REFERENCE]).quality.chrf == pytest.approx(100.0)


def test_what_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write(tmp_path / "log", one_utterance())
    assert "1 utterances but the reference has 2 lines" in refused(capsys, log, f"{REFERENCE}\n{REFERENCE}")
    assert "cannot be read" in refused(capsys, tmp_path / "absent")
    assert "no captions" in refused(capsys, write(tmp_path / "bare", [session_line(), EndLine(audio_s=0, wall_s=0)]))
    empty = tmp_path / "empty"
    empty.touch()
    assert "empty" in refused(capsys, empty)
    broken = tmp_path / "broken"
    broken.write_text('{"type":"session"}\n', encoding="utf-8")
    assert "schema_version" in refused(capsys, broken)


def test_segment_times_that_do_not_fit_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, reference = write(tmp_path / "log", one_utterance()), tmp_path / "de.txt"
    reference.write_text(REFERENCE + "\n", encoding="utf-8")
    for text, complaint in (
        ("- {wav: a.wav, offset: 0, duration: 1}\n- {wav: a.wav, offset: 1, duration: 1}\n", "2 segment times but 1"),
        ("words", "not a list of segments"),
        ("- {wav: a.wav, offset: 0, duration: 0}\n", "must be positive"),
        ("[", "cannot be read"),
    ):
        segments = tmp_path / "segments.yaml"
        segments.write_text(text, encoding="utf-8")
        status, _, err = run(capsys, str(log), "--reference", str(reference), "--segments", str(segments))
        assert status == 2
        assert complaint in err
        assert err.count("\n") == 1
