"""What `surtitle doctor` says of a machine where the translator's library could not be compiled."""

from __future__ import annotations

from types import SimpleNamespace

import psutil
import pytest

from app.commands import doctor
from engine.presets import load_preset, preset_ids

MODELS = [
    {"name": name, "present": True, "where": "/models", "bytes": 1} for name in ("whisper-tiny.en", "gemma-3-270m")
]
NO_GPU = {
    name: f"{name} needs a GPU with 9 GiB of memory, and there is none here: laptop runs on the CPU."
    for name in preset_ids()
    if load_preset(name).uses_vllm
}
ALONE = {"models": MODELS, "gpu_obstacles": NO_GPU, "broken": {"llamacpp": "No module named 'llama_cpp'"}}
NEITHER = {**ALONE, "broken": {**ALONE["broken"], "huggingface": "No module named 'torch'"}}  # type: ignore[dict-item]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """No MT server, and enough main memory for every preset."""
    monkeypatch.setattr(doctor, "_answers", lambda url: False)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=64 * doctor.GIB))


def laptop(engine: dict[str, object]) -> doctor.Finding:
    return next(finding for finding in doctor._presets(engine) if finding.text.startswith("laptop"))


def test_torch_that_stands_in_is_a_note_and_no_obstacle() -> None:
    assert doctor.obstacles(load_preset("laptop"), ALONE) == []
    found = laptop(ALONE)
    assert found.state == "note"
    assert "can be used, more slowly: llama-cpp-python cannot be loaded (No module named 'llama_cpp')" in found.text
    assert "install a C++ compiler (g++)" in found.text
    assert not [finding for finding in doctor._presets(ALONE) if finding.state == "bad"]


def test_neither_library_is_an_obstacle() -> None:
    (why,) = doctor.obstacles(load_preset("laptop"), NEITHER)
    assert "neither llama-cpp-python (No module named 'llama_cpp') nor torch (No module named 'torch')" in why
    assert [finding for finding in doctor._presets(NEITHER) if finding.state == "bad"]


def test_a_preset_without_llama_cpp_is_not_concerned() -> None:
    assert doctor.stand_in(load_preset("remote"), ALONE) == ""
    assert doctor.stand_in(load_preset("laptop"), {"models": MODELS, "broken": {}}) == ""


# ---------------------------------------------------------------- presets for a GPU

A100 = ["NVIDIA A100-PCIE-40GB", 40.0, 39.4]
DRIVER = {"driver": "580.65.06", "driver_cuda": "13.0", "wheels": "CUDA 13", "torch_cuda": "13.0"}
GPU_MACHINE = {
    "models": MODELS, "gpus": [A100], "driver": DRIVER, "gpu_obstacles": {}, "libraries": {"vllm": "0.26.0"},
}  # fmt: skip


def about(preset_id: str, engine: dict[str, object]) -> doctor.Finding:
    return next(finding for finding in doctor._presets(engine) if finding.text.startswith(preset_id))


def test_a_preset_that_does_not_fit_says_why_and_what_to_do() -> None:
    found = about("gemma_low_latency", ALONE)
    assert found.state == "note"
    assert found.text == (
        "gemma_low_latency: needs a GPU with 9 GiB of memory, and there is none here: laptop runs on the CPU"
    )


def test_a_preset_that_fits_says_what_is_downloaded_first() -> None:
    found = about("qwen_low_latency", GPU_MACHINE)
    assert found.state == "ok"
    assert found.text == (
        "qwen_low_latency: fits on the GPU and can be used; Qwen/Qwen3-ASR-0.6B, Qwen/Qwen3-ForcedAligner-0.6B, "
        "Qwen/Qwen3-1.7B: downloaded first, 9 GiB on disk for all its weights"
    )
    here = [{"name": name, "present": True} for name in load_preset("qwen_low_latency").models]
    assert about("qwen_low_latency", {**GPU_MACHINE, "models": here}).text.endswith(": fits on the GPU and can be used")


def gpu_lines(**driver: str) -> list[tuple[str, str]]:
    return [(f.state, f.text) for f in doctor._gpus({**GPU_MACHINE, "driver": {**DRIVER, **driver}})]


def test_driver_and_wheels_are_named() -> None:
    gpu, driver = gpu_lines()
    assert gpu == ("ok", "NVIDIA A100-PCIE-40GB, 39.4 of 40 GiB free")
    assert driver == (
        "ok", "580.65.06 (CUDA 13.0) runs vLLM's wheels for CUDA 13; installed here: for CUDA 13.0"
    )  # fmt: skip


def test_wheels_that_the_driver_is_too_old_for_are_named() -> None:
    state, text = gpu_lines(driver="550.54", driver_cuda="12.4", wheels="CUDA 12.9")[-1]
    assert state == "note"
    assert "550.54 (CUDA 12.4) runs vLLM's wheels for CUDA 12.9, and these here are for CUDA 13.0" in text
    assert gpu_lines(driver="550.54", wheels="CUDA 12.9", torch_cuda="12.9")[-1][0] == "ok"
    assert gpu_lines(driver="580.1", torch_cuda="12.9")[-1][0] == "ok"
    state, text = gpu_lines(driver="470.1", driver_cuda="11.4", wheels="")[-1]
    assert (state, "too old" in text, "525" in text) == ("note", True, True)


def test_a_driver_without_vllm_and_a_machine_without_driver() -> None:
    found = doctor._gpus({**GPU_MACHINE, "libraries": {}})[-1]
    assert found.state == "note"
    assert "surtitle setup --gpu" in found.text
    assert doctor._gpus({}) == [], "nobody has looked"
    (none,) = doctor._gpus({"models": MODELS})
    assert none.state == "note"
    assert "no NVIDIA driver answers" in none.text
    assert "CUDA_VISIBLE_DEVICES" in doctor._gpus({**GPU_MACHINE, "gpus": []})[0].text
