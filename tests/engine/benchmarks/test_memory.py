"""The split of a preset's GPU memory: dimensions against the model classes themselves, and the presets' arithmetic."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from engine.benchmarks import memory
from engine.benchmarks.architectures import ARCHITECTURES
from engine.benchmarks.speech_checkpoints import SHAPES
from engine.presets import CONTEXT_GIB, PresetError, load_preset, preset_ids

GPU_PRESETS = [name for name in preset_ids() if load_preset(name).memory_gib.mt]
LARGEST_GIB = 38.0  # of all processes on a GPU of 40 GB


def numbers(config: Any, made: str) -> int:
    """Weights of a model class, made without memory."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        model = getattr(transformers, made)(config)
    return sum(weight.numel() for weight in model.parameters())


@pytest.mark.parametrize(
    ("name", "settings", "made"),
    [("qwen3-1.7b", "Qwen3Config", "Qwen3ForCausalLM"), ("gemma-4-e4b", "Gemma4TextConfig", "Gemma4ForCausalLM")],
)
def test_weights_of_text_models_are_those_of_the_class(name: str, settings: str, made: str) -> None:
    transformers = pytest.importorskip("transformers")
    config = dict(ARCHITECTURES[name].config)
    model_type = config.pop("model_type")
    real = numbers(getattr(transformers, settings)(**config), made)
    assert getattr(transformers, settings).model_type == model_type
    # vLLM keeps the unused key and value weights of layers that share; the class does not have them
    assert memory.text_parameters(config) == pytest.approx(real, rel=0.01)


@pytest.mark.parametrize("name", sorted(memory.SPEECH.values()))
def test_weights_of_speech_models_are_those_of_the_class(name: str) -> None:
    from tests.vllm_engine.speech import settings_of

    shape, config = SHAPES[name], settings_of(name)
    if shape.classes:
        config.num_labels = shape.classes
    made = "Qwen3ASRForTokenClassification" if shape.classes else "Qwen3ASRForConditionalGeneration"
    assert memory.speech_parameters(shape) == pytest.approx(numbers(config, made), rel=0.01)


def test_shadows_are_those_that_were_measured() -> None:
    """Those of 4 heads beside a pool of 2 GiB, on an H200."""
    results = Path(memory.__file__).parent / "results" / "capture-h200-eager.json"
    info = json.loads(results.read_text(encoding="utf-8"))["info"]
    share = memory.shadow_share(ARCHITECTURES["gemma-4-e4b"].config, 4)
    assert share * 2 * memory.GIB == info["shadow_bytes"]


@pytest.mark.parametrize("name", GPU_PRESETS)
def test_each_engine_holds_its_model_and_has_room_for_a_step(name: str) -> None:
    preset = load_preset(name)
    parts = memory.split(preset)
    assert [part.engine for part in parts] == ["recogniser", "aligner", "translator"]
    for part in parts:
        assert part.rest >= 1.2, part
        assert part.tokens >= preset.translator.context_tokens, part  # vLLM refuses less than one whole request


@pytest.mark.parametrize("name", GPU_PRESETS)
def test_a_preset_asks_for_what_its_engines_take(name: str) -> None:
    preset = load_preset(name)
    together = sum(part.total + CONTEXT_GIB for part in memory.split(preset))
    assert together - 0.01 <= preset.needs.gpu_gib <= together + 0.5
    assert preset.gpu_gib <= LARGEST_GIB
    weights = sum(part.weights for part in memory.split(preset))
    assert preset.needs.disk_gib >= 1.1 * weights


def test_the_small_preset_fits_a_card_of_16_gb() -> None:
    assert load_preset("qwen_low_latency").gpu_gib <= 14.5


def test_the_table_and_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    memory.add_arguments(parser)
    assert memory.run(parser.parse_args(["--json", str(tmp_path / "m.json")])) == 0
    assert all(name in capsys.readouterr().out for name in GPU_PRESETS[-1:])
    assert set(json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))) == set(GPU_PRESETS)
    assert memory.run(parser.parse_args(["laptop"])) == 2
    assert "gives no engine a part of a GPU" in capsys.readouterr().err


def test_a_model_of_unknown_dimensions_is_named() -> None:
    with pytest.raises(PresetError, match="dimensions of owner/other"):
        memory.split(load_preset("qwen_low_latency", {"translator.model": "owner/other"}))
