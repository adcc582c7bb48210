"""Curves of policies: points, intervals, comparison, the segments that lose, and what is left of a run that was cut."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from engine.alignatt.policy import Policy
from engine.benchmarks.curves.explain import Loss, explain, losses, worst_pair
from engine.benchmarks.curves.grid import points_of
from engine.benchmarks.curves.intervals import Measured, compare, interval, measure, resample_indices
from engine.benchmarks.curves.jobs import Finished, Task, run_tasks
from engine.benchmarks.curves.plot import draw
from engine.benchmarks.curves.points import Outcome, Point, Spoken, outcome_of, speak
from engine.benchmarks.curves.report import comparison_json, comparisons, curves_of, point_json
from engine.benchmarks.curves.work import WorkFolder
from engine.evaluation.recognition import Timing
from engine.evaluation.talks import Segment, SpokenSpan
from engine.mt.contract import TranslationError
from tests.engine.mt.scripted import ScriptedTranslator

LANGUAGES = ("en", "de")
TIMING = Timing(0.0, 1.0, 1.0)
SEGMENTS = [
    Segment("we go home now", "WE GO HOME NOW", SpokenSpan("a", 0.0, 4.0)),
    Segment("it is late", "ES IST SPAT", SpokenSpan("a", 5.0, 3.0)),
    Segment("and so we part", "AND SO WE PART", SpokenSpan("b", 0.0, 4.0)),
]
SPOKEN = speak(SEGMENTS, "en")
REFERENCES = [segment.reference for segment in SEGMENTS]
HOLD_1 = Point(Policy(name="hold_n", hold_n=1), "n=1")


def outcomes(point: Point, heard: Sequence[Spoken] = SPOKEN) -> list[Outcome]:
    return [outcome_of(point, spoken, ScriptedTranslator(), LANGUAGES, TIMING) for spoken in heard]


def made_up(name: str, laal_s: float, chrf: float, spread: float = 0.0) -> Measured:
    samples = chrf + spread * np.linspace(-1, 1, 101)
    point = Point(replace(Policy(), name=name), f"{laal_s:g}")  # type: ignore[arg-type]
    return Measured(point, chrf, laal_s, samples, np.full(101, laal_s))


def test_every_policy_has_at_least_four_points_with_names_of_their_own() -> None:
    points = points_of(Policy())
    for name in ("alignatt", "hold_n", "wait_k", "local_agreement"):
        assert sum(point.policy.name == name for point in points) >= 4
    assert len({point.name for point in points}) == len(points)


def test_a_point_reports_text_latency_and_erasure() -> None:
    first = outcomes(HOLD_1)[0]
    # a word a second, each released when the next one is heard, the last with the final
    assert (first.hypothesis, first.units, first.early_units, first.erased_units) == ("WE GO HOME NOW", 4, 3, 0)
    assert first.laal_s == pytest.approx(((2 - 0) + (3 - 1) + (4 - 2)) / 3)


def test_text_that_was_misheard_stays_wrong_once_it_is_released() -> None:
    heard = speak(SEGMENTS, "en", misheard_rate=1.0)
    assert all(set(spoken.misheard) == set(range(len(spoken.words))) for spoken in heard)
    hasty, patient = Point(Policy(name="hold_n", hold_n=0), "n=0"), Point(Policy(name="wait_k", wait_k=0), "k=0")
    texts = [outcomes(point, heard)[0] for point in (hasty, patient)]
    assert texts[0].hypothesis != "WE GO HOME NOW"
    assert texts[1].hypothesis == "WE GO HOME NOW"
    assert texts[0].erased_units == texts[1].erased_units == 0


def test_asking_less_often_is_slower() -> None:
    laal = [outcomes(replace(HOLD_1, every=every))[0].laal_s for every in (1, 2)]
    assert laal[0] is not None
    assert laal[1] is not None
    assert laal[1] > laal[0]


def test_intervals_enclose_the_value_and_are_the_same_every_time() -> None:
    found = [measure(HOLD_1, outcomes(HOLD_1), REFERENCES, resample_indices(len(SEGMENTS), 200)) for _ in range(2)]
    low, high = interval(found[0].chrf_samples)
    assert low <= found[0].chrf <= high
    assert np.array_equal(found[0].chrf_samples, found[1].chrf_samples)
    assert found[0].laal_s == pytest.approx(np.mean([o.laal_s for o in outcomes(HOLD_1) if o.laal_s is not None]))


def test_a_point_is_compared_at_its_own_latency() -> None:
    curve = [made_up("hold_n", 1.0, 40.0), made_up("hold_n", 3.0, 60.0)]
    verdicts = {
        chrf: compare(made_up("alignatt", 2.0, chrf, spread), curve).verdict
        for chrf, spread in ((55.0, 1.0), (50.5, 1.0), (45.0, 1.0))
    }
    assert verdicts == {55.0: "above", 50.5: "on", 45.0: "below"}
    middle = compare(made_up("alignatt", 2.0, 55.0), curve)
    assert middle.other_chrf == pytest.approx(50.0)
    assert compare(made_up("alignatt", 9.0, 55.0), curve).other_chrf == pytest.approx(60.0)
    assert compare(made_up("alignatt", 0.5, 1.0), curve).verdict == "alone"


def test_the_worst_pair_is_the_largest_loss_at_similar_latency() -> None:
    mine = [made_up("alignatt", 1.0, 40.0), made_up("alignatt", 2.0, 50.0)]
    others = [made_up("hold_n", 1.1, 41.0), made_up("hold_n", 1.9, 55.0), made_up("hold_n", 3.0, 90.0)]
    pair = worst_pair(mine, others)
    assert pair is not None
    assert (pair[0].laal_s, pair[1].laal_s) == (2.0, 1.9)
    assert worst_pair(mine, [made_up("hold_n", 9.0, 90.0)]) is None


def test_losing_segments_are_explained_token_by_token() -> None:
    right = outcomes(HOLD_1)
    wrong = [replace(right[0], hypothesis="WE"), *right[1:]]
    found = losses(wrong, right, SEGMENTS, 2)
    assert found[0].segment == 0
    assert found[0].points > 0 == found[1].points
    out = StringIO()
    points = (Point(Policy(), "θ=0.5"), HOLD_1)
    console = Console(file=out, width=160)
    explain(console, Loss(0, 12.0), SPOKEN[0], points, ScriptedTranslator(), LANGUAGES, TIMING)
    text = out.getvalue()
    assert "+12.0 chrF lost" in text
    assert "0:we" in text
    assert "alignatt:source_frontier" in text
    assert "hold_n n=1" in text


def test_result_and_picture(tmp_path: Path) -> None:
    indices = resample_indices(len(SEGMENTS), 50)
    results = []
    for point in (Point(Policy(), "θ=0.5"), HOLD_1, Point(Policy(name="hold_n", hold_n=2), "n=2")):
        found = outcomes(point)
        results.append((measure(point, found, REFERENCES, indices), found))
    data = point_json(results[0], REFERENCES, "de")
    assert data["erasure"] == 0
    assert data["policy"]["name"] == "alignatt"
    assert data["chrf_interval"][0] <= data["chrf"] <= data["chrf_interval"][1]
    curves = curves_of(results)
    assert [len(points) for points in curves.values()] == [1, 2]
    compared = [comparison_json(found) for found in comparisons(curves)]
    assert [row["other"] for row in compared] == ["hold_n"]
    draw(curves, "title", tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_outcomes_are_found_again_under_the_same_setting_only(tmp_path: Path) -> None:
    found, spoken = outcomes(HOLD_1)[0], SPOKEN[0]
    WorkFolder(tmp_path / "work", "one", TIMING).add(HOLD_1, spoken, found)
    assert WorkFolder(tmp_path / "work", "one", TIMING).get(HOLD_1, spoken) == found
    assert WorkFolder(tmp_path / "work", "two", TIMING).get(HOLD_1, spoken) is None
    assert WorkFolder(tmp_path / "work", "one", replace(TIMING, delay_s=0.5)).get(HOLD_1, spoken) is None
    assert WorkFolder(tmp_path / "work", "one", TIMING).get(replace(HOLD_1, every=2), spoken) is None
    assert WorkFolder(tmp_path / "work", "one", TIMING).get(HOLD_1, replace(spoken, misheard={0: "he"})) is None


def test_half_a_line_of_a_killed_run_is_dropped(tmp_path: Path) -> None:
    found = outcomes(HOLD_1)
    work = WorkFolder(tmp_path, "one", TIMING)
    work.add(HOLD_1, SPOKEN[0], found[0])
    with (tmp_path / "outcomes.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"key": ')
    again = WorkFolder(tmp_path, "one", TIMING)
    again.add(HOLD_1, SPOKEN[1], found[1])
    last = WorkFolder(tmp_path, "one", TIMING)
    assert [last.get(HOLD_1, spoken) for spoken in SPOKEN] == [*found[:2], None]


def tasks(folder: Path) -> list[Task]:
    work, points = WorkFolder(folder, "one", TIMING), (HOLD_1, Point(Policy(), "θ=0.5"))
    return [Task(at, spoken, points, work.drafts(spoken), LANGUAGES, TIMING) for at, spoken in enumerate(SPOKEN)]


def in_order(finished: Iterable[Finished]) -> list[tuple[Outcome, ...]]:
    return [done.outcomes for done in sorted(finished, key=lambda done: done.task.number)]


def test_several_processes_find_what_one_finds(tmp_path: Path) -> None:
    alone = in_order(run_tasks(tasks(tmp_path / "one"), 1, ScriptedTranslator(), ScriptedTranslator))
    spread = in_order(run_tasks(tasks(tmp_path / "two"), 2, ScriptedTranslator(), ScriptedTranslator))
    assert alone == spread
    assert alone[0][0] == outcomes(HOLD_1)[0]
    drafts = [sorted(path.name for path in (tmp_path / name / "drafts").iterdir()) for name in ("one", "two")]
    assert drafts[0] == drafts[1]
    assert len(drafts[0]) == len(SPOKEN)


class Broken(ScriptedTranslator):
    """Ends its process at the first draft, as a lack of memory does."""

    def count_tokens(self, text: str) -> int:
        os._exit(9)


def test_a_process_that_dies_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TranslationError, match="A process of the benchmark died"):
        list(run_tasks(tasks(tmp_path), 2, ScriptedTranslator(), Broken))
