"""Whether a preset fits a GPU, told before anything of it is loaded; what the machine has is put in."""

from __future__ import annotations

import pytest

from engine import fitting
from engine.fitting import Gpus, check, obstacle
from engine.models import ModelError
from engine.presets import Part, load_preset

A100: Gpus = (("NVIDIA A100-PCIE-40GB", 40.0, 39.4),)


def why(preset_id: str, here: Gpus, vllm: bool = True, part: Part | None = None) -> str:
    return obstacle(load_preset(preset_id), part, look=lambda: here, vllm=lambda: vllm)


def test_a_preset_that_fits_has_no_obstacle() -> None:
    assert why("gemma_low_latency", A100) == ""
    assert why("laptop", (), vllm=False) == ""
    check(load_preset("gemma_low_latency"), look=lambda: A100, vllm=lambda: True)


def test_a_gpu_that_is_too_small_names_the_preset_that_fits() -> None:
    assert why("gemma_low_latency", (("L4", 24.0, 23.6),)) == (
        "gemma_low_latency needs 33 GiB of GPU memory, 23.6 GiB are free: qwen_low_latency fits."
    )


def test_a_gpu_that_is_too_small_for_all_names_one_for_the_cpu() -> None:
    assert why("qwen_low_latency", (("GTX", 8.0, 7.5),)) == (
        "qwen_low_latency needs 14.3 GiB of GPU memory, 7.5 GiB are free: no preset for a GPU fits, laptop runs on the "
        "CPU."
    )


def test_memory_that_others_use_can_be_freed() -> None:
    assert why("gemma_low_latency", (("A100", 40.0, 24.0),)) == (
        "gemma_low_latency needs 33 GiB of GPU memory, 24 of 40 GiB are free: close what uses the rest; until then, "
        "qwen_low_latency fits."
    )


def test_without_a_gpu_there_is_the_cpu() -> None:
    assert why("gemma_high_latency", (), vllm=False) == (
        "gemma_high_latency needs a GPU with 33 GiB of memory, and there is none here: laptop runs on the CPU."
    )


def test_a_missing_library_is_said_when_the_gpu_would_do() -> None:
    text = why("gemma_low_latency", A100, vllm=False)
    assert text.startswith("gemma_low_latency runs on vLLM, which is not installed here: `surtitle setup --gpu`")


def test_the_largest_gpu_counts() -> None:
    assert why("gemma_low_latency", (("small", 8.0, 8.0), *A100)) == ""


def test_a_part_needs_less_than_the_whole() -> None:
    free = (("L4", 24.0, 21.0),)
    assert why("gemma_low_latency", free, part="translator") == ""
    assert why("gemma_low_latency", free, part="recogniser") == ""
    assert why("gemma_low_latency", (("T4", 15.0, 14.0),), part="translator").startswith(
        "The translator of gemma_low_latency needs 20.1 GiB of GPU memory, 14 GiB are free: "
    )


def test_needs_round_up_and_what_is_free_rounds_down() -> None:
    text = fitting.shortage("x", 14.01, (("card", 14.04, 14.0),))
    assert "needs 14.1 GiB of GPU memory, 14 of 14 GiB are free" in text


def test_the_sentence_is_raised() -> None:
    with pytest.raises(ModelError, match=r"^qwen_low_latency needs a GPU with 14\.3 GiB"):
        check(load_preset("qwen_low_latency"), look=lambda: (), vllm=lambda: True)
