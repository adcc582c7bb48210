"""No surface can run CUDA graphs whose rows were not verified. See engine/LIMITATIONS.md, "Modes"."""

from __future__ import annotations

import argparse
import ast
import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from engine.benchmarks import mt as benchmark
from engine.capture import modes, settings, start
from engine.capture.guard import CaptureError, GraphsFailed
from engine.capture.modes import EAGER, GRAPH_MODES, NO_CAPTURE, ModeRecord, plan
from engine.capture.settings import EngineSettings
from engine.evaluation.scores import capture_verified
from engine.mt.vllm import VllmTranslator
from engine.presets import TranslatorPreset, load_preset, preset_ids
from engine.schemas import SessionLine

SESSION: dict[str, Any] = {
    **dict.fromkeys(("preset", "source_lang", "target_lang", "model", "head_set"), "x"),
    "policy": {},
    "versions": {},
}
ENGINE = Path(modes.__file__).resolve().parents[1]


class FakeEngine:
    """An engine that starts at once; which modes pass their self-test is up to the test."""

    def __init__(self, mode: str) -> None:
        self.mode = ModeRecord(mode)
        self.info: dict[str, Any] = {}
        self.closed = False

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[FakeEngine]:
    engines: list[FakeEngine] = []

    def build(settings: EngineSettings, mode: str, device: str, total_gib: float) -> tuple[FakeEngine, int]:
        engines.append(FakeEngine(mode))
        return engines[-1], 1000

    monkeypatch.setattr(start, "_build", build)
    monkeypatch.setattr(start, "machine", lambda settings: ("cuda", 80.0))
    return engines


def started(bad: set[str], **changes: Any) -> Any:
    def self_test(engine: Any, vocabulary: int) -> str | None:
        return "rows are wrong" if engine.mode.mode in bad else None

    return start.start(EngineSettings("model", heads=((1, 2),), **changes), self_test=self_test)


@pytest.mark.parametrize("mode", GRAPH_MODES)
def test_every_plan_with_graphs_falls_back_to_eager_and_then_to_no_rows(mode: str) -> None:
    assert plan(False, mode) == (mode, EAGER, NO_CAPTURE)
    assert plan(True, mode) == (EAGER, NO_CAPTURE)
    assert plan(False, "NONE") == (EAGER, NO_CAPTURE)


@pytest.mark.parametrize("mode", [*GRAPH_MODES, EAGER, "compiled", NO_CAPTURE])
def test_a_mode_is_verified_by_its_self_test_alone(mode: str) -> None:
    assert not ModeRecord(mode).verified
    assert not ModeRecord(mode).failed("why").verified
    assert ModeRecord(mode).passed().verified == (mode != NO_CAPTURE)


@pytest.mark.parametrize("label", ["", "FULL", "FULL/not run", "made-up", "none/failed", "eager/failed"])
def test_logs_of_unverified_modes_are_not_scored(label: str) -> None:
    mode, _, self_test = label.partition("/")
    assert not capture_verified(SessionLine(**SESSION, capture_mode=label, info={}))
    assert not capture_verified(SessionLine(**SESSION, capture_mode=mode, info={"self_test": self_test or "not run"}))


def test_an_engine_whose_self_test_breaks_is_closed(built: list[FakeEngine]) -> None:
    def self_test(engine: Any, vocabulary: int) -> str | None:
        raise KeyError("float8")

    with pytest.raises(KeyError):
        start.start(EngineSettings("model", heads=((1, 2),)), self_test=self_test)
    assert [engine.closed for engine in built] == [True]


def test_graphs_run_only_after_their_self_test_in_this_engine(built: list[FakeEngine]) -> None:
    engine = started(bad=set())
    assert engine is built[0]
    assert engine.mode == ModeRecord("FULL_AND_PIECEWISE", "passed")


def test_a_failed_self_test_is_one_error_line_and_eager(
    built: list[FakeEngine], caplog: pytest.LogCaptureFixture
) -> None:
    engine = started(bad={"FULL_AND_PIECEWISE"})
    assert engine.mode == ModeRecord(EAGER, "passed", "FULL_AND_PIECEWISE: rows are wrong")
    assert built[0].closed
    errors = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "FULL_AND_PIECEWISE: rows are wrong" in errors[0].getMessage()


def test_graphs_that_cannot_be_made_are_one_error_line_and_eager(
    built: list[FakeEngine], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = start._build

    def build(settings: EngineSettings, mode: str, device: str, total_gib: float) -> Any:
        if mode in GRAPH_MODES:
            raise GraphsFailed("There is not enough memory for model: 2 GiB short.")
        return whole(settings, mode, device, total_gib)

    monkeypatch.setattr(start, "_build", build)
    reason = "FULL_AND_PIECEWISE: There is not enough memory for model: 2 GiB short"
    assert started(bad=set()).mode == ModeRecord(EAGER, "passed", reason)
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    assert "2 GiB short" in errors[0]


@pytest.mark.parametrize(
    ("error", "failing"), [(CaptureError("There is no such model."), GRAPH_MODES), (GraphsFailed("No."), (EAGER,))]
)
def test_what_eager_cannot_mend_ends_the_start(
    error: CaptureError, failing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def build(settings: EngineSettings, mode: str, device: str, total_gib: float) -> Any:
        asked.append(mode)
        if mode in failing:
            raise error
        return FakeEngine(mode), 1000

    monkeypatch.setattr(start, "_build", build)
    monkeypatch.setattr(start, "machine", lambda settings: ("cuda", 80.0))
    with pytest.raises(CaptureError) as caught:
        started(bad={"FULL_AND_PIECEWISE"})
    assert caught.value is error
    assert asked[-1] in failing


def test_when_eager_fails_too_there_are_no_rows_and_health_says_so(built: list[FakeEngine]) -> None:
    engine = started(bad={"PIECEWISE", EAGER}, cudagraph_mode="PIECEWISE")
    assert engine.mode.mode == NO_CAPTURE
    assert engine.mode.self_test == "failed"
    assert "rows are wrong" in engine.mode.reason
    assert not engine.mode.verified


def test_a_self_test_that_breaks_the_engine_counts_as_failed(built: list[FakeEngine]) -> None:
    def self_test(engine: Any, vocabulary: int) -> str | None:
        if engine.mode.mode != EAGER:
            raise CaptureError("The vLLM engine failed.")
        return None

    assert start.start(EngineSettings("model", heads=((1, 2),)), self_test=self_test).mode == ModeRecord(
        EAGER, "passed", "FULL_AND_PIECEWISE: The vLLM engine failed"
    )


def test_whoever_asks_for_eager_gets_eager(built: list[FakeEngine]) -> None:
    assert started(bad=set(), enforce_eager=True).mode.mode == EAGER
    assert [engine.mode.mode for engine in built] == [EAGER]


@pytest.mark.parametrize("preset_id", preset_ids())
def test_every_preset_plans_through_the_safe_modes(preset_id: str) -> None:
    wanted = load_preset(preset_id).translator
    modes_of = EngineSettings(
        "m", ((0, 0),), enforce_eager=wanted.mt_vllm_enforce_eager, cudagraph_mode=wanted.mt_vllm_cudagraph_mode
    ).plan(cpu=False)
    assert modes_of[-2:] == (EAGER, NO_CAPTURE)


def test_the_published_names_and_one_default_on_every_surface() -> None:
    names = ("mt_vllm_enforce_eager", "mt_vllm_cudagraph_mode", "mt_vllm_quantization")
    fields = TranslatorPreset.model_fields
    translator = inspect.signature(VllmTranslator.__init__).parameters
    assert [fields[name].default for name in names] == [translator[name].default for name in names]
    assert [fields[name].default for name in names] == [
        modes.DEFAULT_ENFORCE_EAGER, modes.DEFAULT_CUDAGRAPH_MODE, settings.NO_QUANTIZATION,
    ]  # fmt: skip
    assert get_args(fields["mt_vllm_quantization"].annotation) == settings.QUANTIZATIONS
    parser = argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    assert parser.parse_args([]).mt_vllm_cudagraph_mode == modes.DEFAULT_CUDAGRAPH_MODE
    assert EngineSettings("m").cudagraph_mode == modes.DEFAULT_CUDAGRAPH_MODE


def test_further_arguments_of_vllm_cannot_change_the_mode() -> None:
    for name, value in (("enforce_eager", False), ("compilation_config", {"cudagraph_mode": "FULL"})):
        with pytest.raises(CaptureError, match=f"{name} follows from mt_vllm_enforce_eager"):
            EngineSettings("m", ((0, 0),), vllm={name: value}).arguments(EAGER, "cuda", 80.0)


def test_only_one_file_chooses_between_eager_and_graphs() -> None:
    """Engine arguments that switch graphs are written in `capture.settings` and nowhere else."""
    found = set()
    for path in ENGINE.rglob("*.py"):
        if "asr" in path.parts:  # recognisers capture nothing
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in ("compilation_config", "cudagraph_capture_sizes"):
                found.add(path)
    assert found == {Path(settings.__file__).resolve()}


def test_rows_of_an_engine_without_a_passed_self_test_are_withheld() -> None:
    from engine.capture.host import CaptureEngine, Job
    from engine.capture.request import RowRequest

    request = RowRequest(0, 1, 2, 1)
    output = SimpleNamespace(outputs=[SimpleNamespace(token_ids=[5], finish_reason="length")], num_cached_tokens=0)
    for record in (ModeRecord("FULL"), ModeRecord("FULL").failed("why"), ModeRecord(EAGER), ModeRecord(NO_CAPTURE)):
        engine = CaptureEngine.__new__(CaptureEngine)
        engine.mode, engine.settings = record, EngineSettings("m", ((0, 0),))
        job = Job([1, 2], 1, frozenset(), request)
        engine._deliver(job, output, [])
        assert job.result is not None
        assert job.result.rows is None
