"""Stages, overlap and lag of a session that is written by hand; memory of GPUs by a library that is made up."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from engine.benchmarks import gpu_memory
from engine.benchmarks.gpu_memory import GIB, GpuMemory
from engine.benchmarks.session_chain import captured, chain, quantiles, whole
from engine.benchmarks.session_engine import Rows, Told, Work
from engine.benchmarks.session_play import Record
from engine.benchmarks.session_report import loaded, progress, session, show
from engine.messages import Caption, Error, Event, Health, Loading, Ready, Stopped
from engine.spans import Span


def caption(clock_s: float, reason: str = "length", final: bool = False, **stages: float) -> Caption:
    return Caption(
        utterance_id=0, stable="eins zwei" if final else "eins", held="", source_stable="one two", source_tail="",
        covered_source_units=1, final=final, reason=reason, start_s=0.0, end_s=1.0, audio_s=1.0,
        emitted_s=clock_s + 0.5, stages=stages, clock_s=clock_s,
    )  # fmt: skip


def record_of(*events: tuple[float, Event]) -> Record:
    record = Record(sent=[(0.1 * n, 100 + 0.1 * n) for n in range(1, 31)])
    for at_s, event in events:
        record.take(at_s, event)
    return record


def spans(*rows: tuple[str, float, float, float | None]) -> list[tuple[float, Event]]:
    """Each as its beginning and its end, told when they happen."""
    told: list[tuple[float, Event]] = []
    for stage, began_s, ended_s, at_s in rows:
        told += [
            (began_s, Work(Span(stage, began_s, None, at_s))),
            (ended_s, Work(Span(stage, began_s, ended_s, at_s))),
        ]
    return told


# An update of 400 ms with an alignment of 100 ms in it; a draft that begins with its end; another update meanwhile.
SESSION = spans(
    ("voice_activity", 101.01, 101.02, 1.0),
    ("recogniser", 101.0, 101.4, 1.0),
    ("alignment", 101.3, 101.4, None),
    ("translation", 101.4, 102.4, 1.0),
    ("voice_activity", 101.61, 101.63, 1.5),
    ("recogniser", 101.9, 102.2, 1.5),
    ("voice_activity", 102.51, 102.53, 2.0),
)


def test_a_stage_is_told_apart_from_what_is_inside_it() -> None:
    record = record_of(*SESSION, (102.4, Told(102.4)), (102.41, caption(1.0, wait_ms=2.0, mt_ms=900.0, decide_ms=0.2)))
    figures = chain(record, 2.0)
    stages = figures["stage_ms"]
    assert stages["recogniser"] == {"count": 2, "p50": 300.0, "p95": 300.0, "most": 300.0}
    assert stages["alignment"]["most"] == pytest.approx(100)
    assert stages["voice_activity"]["count"] == 3
    assert stages["wait"]["most"] == 2.0
    assert stages["draft"]["most"] == 900.0
    assert stages["decision"]["most"] == 0.2
    assert stages["caption"]["most"] == pytest.approx(10)
    assert stages["whole"]["most"] == pytest.approx(1410)  # the audio until 1.0 s was sent at 101.0
    assert figures["recogniser"] == {"updates": 2, "busy_s": 0.7, "real_time_factor": 0.35}
    assert figures["translator"] == {"drafts": 1, "superseded": 0, "busy_s": 1.0}


def test_overlap_is_the_share_of_the_translator_s_time() -> None:
    figures = chain(record_of(*SESSION), 2.0)["overlap"]
    assert figures["translator_busy_s"] == 1.0
    assert figures["both_busy_s"] == 0.3
    assert figures["share_of_translator"] == 0.3
    assert figures["updates_begun_during_translation"] == 1
    assert figures["capture_ms_during_translation"]["most"] == pytest.approx(110)
    assert figures["capture_ms_otherwise"]["count"] == 2


def test_a_draft_that_blocks_audio_shows() -> None:
    """Nothing is taken while the draft runs."""
    blocked = spans(
        ("translation", 101.0, 102.0, 0.9),
        ("voice_activity", 102.0, 102.01, 1.1),
        ("recogniser", 102.0, 102.3, 1.1),
    )
    figures = chain(record_of(*blocked), 2.0)["overlap"]
    assert figures["share_of_translator"] == 0.0
    assert figures["updates_begun_during_translation"] == 0
    assert figures["capture_ms_during_translation"] is None
    assert figures["capture_ms_otherwise"]["most"] == pytest.approx(900)


def test_audio_is_found_by_the_block_that_it_came_in() -> None:
    sent = [(0.1, 10.0), (0.2, 10.1), (0.3, 10.2)]
    one = Span("voice_activity", 10.15, 10.16, 0.2)
    assert captured([one, Span("voice_activity", 10.3, 10.4, None)], sent) == [(10.15, pytest.approx(0.05))]
    heard = [SimpleNamespace(caption=SimpleNamespace(clock_s=at), received_s=11.0) for at in (0.15, 0.2005, None, 0.9)]
    assert whole(heard, sent) == [pytest.approx(900), pytest.approx(900)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], None),
        ([3.0], {"count": 1, "p50": 3.0, "p95": 3.0, "most": 3.0}),
        ([float(n) for n in range(100)][::-1], {"count": 100, "p50": 49.5, "p95": 95.0, "most": 99.0}),
    ],
)
def test_quantiles(values: list[float], expected: Any) -> None:
    assert quantiles(values) == expected


def test_nothing_has_happened_yet() -> None:
    figures = session(Record(), 0.0, "de")
    assert figures["stage_ms"] == {}
    assert figures["recogniser"]["real_time_factor"] is None
    assert figures["overlap"]["share_of_translator"] is None
    assert figures["rows"] is None


def test_a_record_knows_what_runs_and_what_was_said() -> None:
    record = record_of(
        (100.0, Loading("recogniser", 0.1, "Loading ears")),
        (101.0, Loading("recogniser", 0.5, "Loading ears")),
        (103.0, Loading("translator", 0.6, "Loading a mouth")),
        (
            105.0,
            Ready("laptop", "en", "de", {"capture_mode": "eager", "self_test": "passed", "versions": {"vllm": "1"}}),
        ),
        (106.0, Work(Span("translation", 106.0, None, 1.0))),
        (106.5, Rows("eager", "passed", 12, 1, 0)),
        (107.0, Health("translator", "safe_mode", "slower")),
        (108.0, Error("asr_failed", "left out")),
        (109.0, Told(108.9)),
        (109.0, caption(1.0, reason="superseded", mt_ms=4.0)),
        (110.0, Told(109.9)),
        (110.0, caption(1.0, final=True)),
        (111.0, Stopped("one", 1.0, 2.0)),
    )
    assert list(record.running) == ["translation"]
    start = loaded(record, 99.0)
    assert start["start_up_s"] == {
        "process": 1.0, "recogniser": 3.0, "translator": 2.0, "all": 6.0,
        "by_text": {"Loading ears": 1.0, "Loading a mouth": 4.0},
    }  # fmt: skip
    assert start["capture_mode"] == "eager/passed"
    figures = session(record, 3.0, "de")
    assert figures["rows"] == {"mode": "eager/passed", "expected": 12, "missing": 1, "nonfinite": 0}
    assert (figures["notes"], figures["errors"]) == (["slower"], ["left out"])
    assert figures["translator"]["superseded"] == 1
    assert figures["text"]["target_words"] == 2
    assert "2 captions, 1 drafts" in progress(record, 3.0)
    memory = {"peak_total_mib": 700, "gpu": {"peak_gib": 30.0}}
    end = {"how": "stopped", "processes_gone_s": 0.5}
    machine = {"cpu": "a processor", "cores": 2, "gpus": ["a GPU"]}
    models = {"recogniser": "ears", "translator": "mouth"}
    what = {"preset": "laptop", "pair": "en-de", "random_weights": False, "models": models, "machine": machine}
    show({**what, **figures, **start, "memory": memory, "end": end})


class Nvml:
    """`pynvml` with two GPUs; the first one's memory is that of the list, one value a look."""

    class NVMLError(Exception):
        pass

    def __init__(self, *used_gib: float) -> None:
        self.used = list(used_gib)
        self.looks = 0

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        self.looks += handle == 0
        used = self.used[min(self.looks, len(self.used)) - 1] if handle == 0 else 0.5
        return SimpleNamespace(used=int(used * GIB), total=80 * GIB)

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[Any]:
        if handle:
            raise self.NVMLError
        return [SimpleNamespace(pid=7, usedGpuMemory=3 * GIB), SimpleNamespace(pid=8, usedGpuMemory=None)]

    def nvmlDeviceGetName(self, handle: int) -> bytes:
        return b"GPU"

    def nvmlSystemGetDriverVersion(self) -> str:
        return "580"


def test_gpu_memory_is_the_most_of_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_memory, "SAMPLE_S", 0.005)
    nvml = Nvml(1.0, 20.0, 31.0, 4.0)
    gpu = GpuMemory(nvml)
    end_s = time.monotonic() + 30
    while nvml.looks < 6:
        assert time.monotonic() < end_s
        time.sleep(0.005)
    gpu.close()
    assert (gpu.idle_gib, gpu.peak_gib) == (1.5, 31.5)
    assert gpu.device() == {"gpus": ["GPU", "GPU"], "total_gib": 160.0, "driver": "580"}


def test_gpu_memory_of_processes_that_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_memory, "SAMPLE_S", 0.005)
    nvml = Nvml(1.0)
    monkeypatch.setattr(nvml, "nvmlDeviceGetCount", lambda: 1)
    gpu = GpuMemory(nvml)
    end_s = time.monotonic() + 30
    while not gpu.peak_by_pid:
        assert time.monotonic() < end_s
        time.sleep(0.005)
    gpu.close()
    assert gpu.peak_of([7, 9]) == {7: 3.0}


def test_a_machine_without_a_gpu_has_no_gpu_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pynvml", None)
    assert GpuMemory.open() is None
