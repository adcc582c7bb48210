"""GPU memory of an engine: what vLLM is told, and the sentence when there is too little."""

from __future__ import annotations

import os
import sys
from types import SimpleNamespace

import pytest

from engine import gpus
from engine.asr.qwen_models import ROLES, SpeechSettings
from engine.capture import start
from engine.capture.guard import MemoryShort
from engine.capture.settings import GIB, EngineSettings


def memory(total_gib: float, **settings: float) -> dict[str, object]:
    arguments = EngineSettings("m", **settings).arguments("none", "cuda", total_gib)  # type: ignore[arg-type]
    names = ("gpu_memory_utilization", "kv_cache_memory_bytes")
    return {name: arguments[name] for name in names if name in arguments}


def test_a_part_and_its_keys_and_values_are_told_in_full() -> None:
    assert memory(40, memory_gib=20, kv_cache_gib=1.5) == {
        "gpu_memory_utilization": 0.5,
        "kv_cache_memory_bytes": 3 * GIB // 2,
    }


def test_keys_and_values_alone_do_not_ask_for_the_whole_gpu() -> None:
    """vLLM refuses to start where its share, 0.92 unless it is told another, is not free."""
    assert memory(40, kv_cache_gib=1)["gpu_memory_utilization"] == 1 / 40
    assert memory(8, memory_gib=20)["gpu_memory_utilization"] == 1.0
    assert memory(40) == {}


def test_each_speech_engine_has_its_own_part(tmp_path: object) -> None:
    settings = SpeechSettings(memory_gib=(7.5, 4.0), kv_cache_gib=(1.25, 0.5))
    made = [settings.engine(tmp_path, role, True, {}) for role in ROLES]  # type: ignore[arg-type]
    assert [(one.role, one.memory_gib, one.kv_cache_gib) for one in made] == [
        ("recogniser", 7.5, 1.25),
        ("forced aligner", 4.0, 0.5),
    ]


@pytest.fixture
def on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with vLLM and CUDA, as far as `machine` looks; CUDA says 20 of 24 GiB."""
    torch = pytest.importorskip("torch")
    for name in (*start.ENVIRONMENT, "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")  # and back to what it was
    platforms = SimpleNamespace(current_platform=SimpleNamespace(is_cpu=lambda: False))
    monkeypatch.setitem(sys.modules, "vllm", SimpleNamespace(platforms=platforms))
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (20 * GIB, 24 * GIB))


@pytest.mark.usefixtures("on_cuda")
@pytest.mark.parametrize("role", ["translator", *ROLES])
def test_who_needs_more_than_there_is_is_named(monkeypatch: pytest.MonkeyPatch, role: str) -> None:
    monkeypatch.setattr(start, "gpus", lambda: (("A100", 40.0, 6.5),))
    with pytest.raises(MemoryShort, match=rf"^The {role} needs 7\.5 GiB of GPU memory, but only 6\.5 GiB are free\.$"):
        start.machine(EngineSettings("m", role=role, memory_gib=7.5))
    assert start.machine(EngineSettings("m", role=role, memory_gib=6.5)) == ("cuda", 40.0)


@pytest.mark.usefixtures("on_cuda")
def test_cuda_is_asked_where_the_driver_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "gpus", lambda: ())
    assert start.machine(EngineSettings("m", memory_gib=19)) == ("cuda", 24.0)
    with pytest.raises(MemoryShort, match=r"only 20\.0 GiB are free"):
        start.machine(EngineSettings("m", memory_gib=21))


@pytest.mark.usefixtures("on_cuda")
@pytest.mark.parametrize(("ranks", "taken"), [(1, "1"), (2, None)])
def test_the_gpu_that_is_looked_at_is_the_one_that_vllm_takes(
    monkeypatch: pytest.MonkeyPatch, ranks: int, taken: str | None
) -> None:
    monkeypatch.setattr(gpus, "gpus", lambda: (("GTX", 8.0, 8.0), ("A100", 40.0, 39.0)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # and back to what it was
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    start.machine(EngineSettings("m", tensor_parallel=ranks))
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == taken


@pytest.mark.usefixtures("on_cuda")
def test_processes_of_vllm_are_spawned_and_report_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_WORKER_MULTIPROC_METHOD", "fork")
    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "0")
    start.machine(EngineSettings("m"))
    assert os.environ["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    assert os.environ["VLLM_NO_USAGE_STATS"] == "1"
