"""What is refused, each with one sentence, and the arguments that vLLM gets."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from engine.capture import guard
from engine.capture.compat import plain_attributes
from engine.capture.guard import CaptureError, MemoryShort
from engine.capture.settings import CaptureConfig, EngineSettings
from engine.capture.start import explain


def layer(backend: str = "TRITON_ATTN", **changes: Any) -> Any:
    def forward(
        layer: Any, query: Any, key: Any, value: Any, kv_cache: Any, attn_metadata: Any, output: Any
    ) -> None: ...

    base = {
        "impl": SimpleNamespace(forward=forward, logits_soft_cap=0), "kv_cache": None, "num_heads": 8,
        "num_kv_heads": 2,
        "head_size": 256, "sliding_window": 512, "layer_name": "layers.0.attn", "kv_cache_dtype": "auto",
        "kv_sharing_target_layer_name": None, "has_sink": False,
        "attn_backend": SimpleNamespace(get_name=lambda: backend),
    }  # fmt: skip
    return SimpleNamespace(**{**base, **changes})


def config(**changes: Any) -> Any:
    parallel = SimpleNamespace(pipeline_parallel_size=1, **changes.pop("parallel", {}))
    base = {
        "speculative_config": None, "parallel_config": parallel, "model_config": SimpleNamespace(use_mla=False),
        "attention_config": SimpleNamespace(backend=None), "cache_config": SimpleNamespace(cache_dtype="auto"),
    }  # fmt: skip
    return SimpleNamespace(**{**base, **changes})


@pytest.mark.parametrize("version", ["0.26.0", "0.32.0", "0.32.0+cpu"])
def test_validated_versions_pass(version: str) -> None:
    guard.check_version(version, allow_unvalidated=False)


def test_another_version_is_refused_with_the_validated_ones_and_an_expert_may_go_on() -> None:
    with pytest.raises(CaptureError, match=r"vLLM 0\.99\.0 is not validated.*0\.26\.0.*0\.32\.0"):
        guard.check_version("0.99.0", allow_unvalidated=False)
    guard.check_version("0.99.0", allow_unvalidated=True)


def test_a_version_that_was_only_read_runs_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    guard.check_version("0.33.0", allow_unvalidated=False)
    assert "only read" in caplog.text


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kv_cache_dtype": "fp8_e4m3"}, "quantised KV cache"),
        ({"kv_cache_dtype": "turboquant_k8v4"}, "quantised KV cache"),
        ({"has_sink": True}, "sinks"),
        ({"impl": SimpleNamespace(forward=layer().impl.forward, logits_soft_cap=50.0)}, "soft cap"),
        ({"impl": SimpleNamespace(forward=lambda query, key: None)}, r"lacks AttentionImpl\.forward\.layer"),
    ],
)
def test_layers_whose_rows_would_be_wrong_are_refused(changed: dict[str, Any], sentence: str) -> None:
    guard.check_layer(layer(), "0.26.0", False)
    with pytest.raises(CaptureError, match=sentence):
        guard.check_layer(layer(**changed), "0.26.0", False)


def test_a_missing_attribute_is_named() -> None:
    broken = layer()
    del broken.num_kv_heads
    with pytest.raises(CaptureError, match=r"vLLM 0\.26\.0 lacks Attention\.num_kv_heads"):
        guard.check_layer(broken, "0.26.0", False)


def test_other_backends_need_the_expert_flag() -> None:
    with pytest.raises(CaptureError, match="FLASH_ATTN"):
        guard.check_layer(layer("FLASH_ATTN"), "0.26.0", False)
    guard.check_layer(layer("FLASH_ATTN"), "0.26.0", True)


def test_a_scheduler_without_what_is_read_is_named() -> None:
    @dataclass
    class SchedulerOutput:
        scheduled_new_reqs: list[Any]

    with pytest.raises(CaptureError, match=r"lacks SchedulerOutput\.scheduled_cached_reqs"):
        guard.check_scheduler(SchedulerOutput, SchedulerOutput, SchedulerOutput, "0.26.0")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"speculative_config": object()}, "speculative decoding"),
        ({"parallel": {"decode_context_parallel_size": 2}}, "decode_context_parallel_size 2"),
        ({"model_config": SimpleNamespace(use_mla=True)}, "MLA"),
        ({"cache_config": SimpleNamespace(cache_dtype="fp8")}, r"quantised KV cache \(fp8\)"),
        ({"attention_config": SimpleNamespace(backend=SimpleNamespace(name="FLASH_ATTN"))}, "FLASH_ATTN"),
    ],
)
def test_configurations_whose_rows_would_be_wrong_are_refused(changed: dict[str, Any], sentence: str) -> None:
    guard.check_config(config(), False)
    with pytest.raises(CaptureError, match=sentence):
        guard.check_config(config(**changed), False)


@pytest.mark.parametrize(("head", "sentence"), [((42, 0), "layers 0 to 41"), ((0, 8), "heads 0 to 7")])
def test_heads_that_the_model_does_not_have_are_refused(head: tuple[int, int], sentence: str) -> None:
    guard.check_heads(((41, 7), (0, 0)), 42, 8)
    with pytest.raises(CaptureError, match=sentence):
        guard.check_heads((head,), 42, 8)


@pytest.mark.parametrize(
    ("raised", "sentence"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "not enough memory"),
        (ValueError("Free memory on device (3.1/80 GiB) is less than desired"), "not enough memory"),
        (OSError("You are trying to access a gated repo"), "accept its terms at https://huggingface.co/owner/model"),
        (ValueError("Model architectures ['X'] are not supported for now"), "does not know the architecture"),
        (RuntimeError("something else\nwith detail"), r"could not start owner/model: something else\.$"),
    ],
)
def test_what_stops_vllm_becomes_one_sentence(raised: Exception, sentence: str) -> None:
    error = explain(raised, EngineSettings("owner/model"))
    assert "\n" not in str(error)
    with pytest.raises(CaptureError, match=sentence):
        raise error


def test_a_sentence_from_a_worker_is_kept() -> None:
    inner = MemoryShort("The translator needs more.", 2.0)
    outer = RuntimeError("engine core failed")
    outer.__cause__ = inner
    assert explain(outer, EngineSettings("m")) is inner


def test_arguments_of_each_mode() -> None:
    settings = EngineSettings("m", ((1, 2),), memory_gib=20)
    eager = settings.arguments("eager", "cuda", 80.0)
    graphs = settings.arguments("FULL", "cuda", 80.0)
    assert eager["enforce_eager"]
    assert "compilation_config" not in eager
    assert graphs["compilation_config"]["cudagraph_mode"] == "FULL"
    assert graphs["gpu_memory_utilization"] == 0.25
    assert graphs["additional_config"] == CaptureConfig(((1, 2),), False)
    assert graphs["language_model_only"]
    assert "quantization" not in graphs
    fp8 = EngineSettings("m", ((1, 2),), quantization="fp8_per_channel")
    assert fp8.arguments("FULL", "cuda", 80.0)["quantization"] == "fp8_per_channel"
    assert graphs["worker_cls"].endswith("CudaCaptureWorker")
    assert settings.arguments("compiled", "cpu", 16.0)["worker_cls"].endswith("CpuCaptureWorker")
    assert settings.arguments("none", "cuda", 80.0)["worker_cls"].endswith("PlainCudaWorker")
    assert EngineSettings("m", kv_cache_gib=0.5).arguments("none", "cpu", 1.0)["kv_cache_memory_bytes"] == 1 << 29


def test_other_heads_use_the_same_compiled_code_and_engines_without_heads_keep_their_towers() -> None:
    assert CaptureConfig(((1, 2),), False).compute_hash() == CaptureConfig((), True).compute_hash()
    assert not EngineSettings("speech").arguments("none", "cuda", 80.0)["language_model_only"]


def test_head_widths_of_gemma_4_are_shown_to_vllm_and_other_models_left_alone() -> None:
    plain = SimpleNamespace(get_text_config=lambda: SimpleNamespace())
    assert plain_attributes(plain) is plain
    text = SimpleNamespace(
        per_layer_attributes={"head_dim"}, layer_types=["sliding_attention", "full_attention"],
        per_layer_config=[SimpleNamespace(head_dim=256), SimpleNamespace(head_dim=512)],
    )  # fmt: skip
    plain_attributes(SimpleNamespace(get_text_config=lambda: text))
    assert text.allow_global_per_layer_attribute_access
    assert text.global_head_dim == 512
