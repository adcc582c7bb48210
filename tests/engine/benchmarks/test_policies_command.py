"""The command `benchmark policies`: result file, picture, resumption, and what is refused."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from engine.benchmarks import policies
from tests.engine.mt.scripted import ScriptedTranslator


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> list[ScriptedTranslator]:
    """The translators that the command made, none with a model."""
    made: list[ScriptedTranslator] = []

    def create(*_args: object) -> ScriptedTranslator:
        made.append(ScriptedTranslator())
        return made[-1]

    monkeypatch.setattr(policies, "create_translator", create)
    return made


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    policies.add_arguments(parser)
    return policies.run(parser.parse_args(words))


def test_the_curve_of_every_policy(
    tmp_path: Path, models: list[ScriptedTranslator], capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--limit", "4", "--output", str(tmp_path / "out" / "policies.json"), "--work", str(tmp_path / "work")]
    assert run(*words, "--plot", str(tmp_path / "curve.png"), "--explain", "1") == 0
    result = json.loads((tmp_path / "out" / "policies.json").read_text(encoding="utf-8"))
    names = [point["policy"]["name"] for point in result["points"]]
    assert all(names.count(name) >= 4 for name in ("alignatt", "hold_n", "wait_k", "local_agreement"))
    assert {point["erasure"] for point in result["points"]} == {0.0}
    assert all(low <= point["chrf"] <= high for point in result["points"] for low, high in [point["chrf_interval"]])
    assert result["held_out"]
    assert result["segments"] == 4
    assert {row["verdict"] for row in result["comparisons"]} <= {"above", "on", "below", "alone"}
    assert (tmp_path / "curve.png").stat().st_size > 1000
    assert "chrF lost" in capsys.readouterr().out
    calls = models[0].calls
    assert calls > 0
    assert run(*words) == 0
    assert models[1].calls == 0


def test_points_of_ones_own(tmp_path: Path, models: list[ScriptedTranslator]) -> None:
    points = ["--point", "alignatt,heard_margin=2,theta=0.3", "--point", "hold_n,hold_n=2,every=3"]
    words = ["--limit", "2", "--output", str(tmp_path / "out.json"), "--work", str(tmp_path / "work")]
    assert run(*words, *points) == 0
    first, second = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["points"]
    assert (first["policy"]["heard_margin"], first["policy"]["theta"], first["every"]) == (2, 0.3, 1)
    assert (second["policy"]["hold_n"], second["every"], second["dial"]) == (2, 3, "hold_n=2 every=3")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--pair", "en-xx"], "does not translate en-xx"),
        (["--talks", "calibration"], "name their folder with --folder"),
        (["--folder", "/nonexistent"], "cannot be read"),
        (["--limit", "1"], "--limit must be 2 or more"),
        (["--jobs", "0"], "--jobs must be 1 or more"),
        (["--point", "guess"], "is not valid at 'policy.name'"),
        (["--point", "alignatt,theta"], "is not a setting"),
        (["--point", "alignatt,theta=2"], "is not valid at 'policy.theta'"),
        (["--point", "hold_n,every=0"], "every must be a whole number above 0"),
        (["--pair", "en-fr"], "do not cover 'fr'"),
        (["--policy", "guess"], "no policy 'guess'"),
    ],
)
def test_what_is_refused(
    models: list[ScriptedTranslator], capsys: pytest.CaptureFixture[str], words: list[str], complaint: str
) -> None:
    assert run(*words) == 2
    err = capsys.readouterr().err
    assert complaint in err
    assert err.count("\n") == 1
    assert models == []
