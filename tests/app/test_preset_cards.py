"""Presets against a machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.preset_cards import DISK, GPU, MEMORY, Need, PresetCard, Weights, preset_cards
from app.settings import Speed
from engine.messages import Machine
from engine.presets import load_preset, resources

HERE = (("whisper-tiny.en", True, "/w", 75_000_000), ("gemma-3-270m", True, "/g", 253_000_000))
LAPTOP = resources() / "presets" / "laptop.toml"
MACHINE = Machine("3.11", 2, 8.0, (), HERE)


def card(preset_id: str = "laptop", machine: Machine | None = MACHINE, **more: object) -> PresetCard:
    cards, problems = preset_cards(machine, **more)  # type: ignore[arg-type]
    assert problems == []
    return next(card for card in cards if card.preset.id == preset_id)


def test_the_laptop_preset_can_be_used_on_a_laptop() -> None:
    laptop = card(free_gib=50.0)
    assert laptop.usable
    assert laptop.sources == ["en"]
    assert laptop.targets("en") == ["de", "fr", "es", "it"]
    assert laptop.targets("xx") == []
    assert laptop.unaccepted == ("Gemma Terms of Use",)
    assert {need.kind for need in laptop.needs} == {MEMORY, DISK}


def test_an_accepted_licence_is_not_asked_for_again() -> None:
    assert card(accepted=["Gemma Terms of Use"]).unaccepted == ()


def test_what_is_missing_is_named() -> None:
    small = Machine("3.11", 2, 1.0, (), (("gemma-3-270m", False, "None", 0), HERE[0]))
    laptop = card(machine=small)
    assert [need.kind for need in laptop.unmet] == [MEMORY]
    assert [weights.name for weights in laptop.missing] == ["gemma-3-270m"]
    assert not laptop.usable


def test_a_machine_that_has_not_answered_rules_nothing_out() -> None:
    assert card(machine=None).usable


def test_room_on_the_disk_matters_only_while_weights_are_missing() -> None:
    preset = load_preset("laptop")
    need = Need(DISK, 2.0, 0.5)
    assert PresetCard(preset, (need,), (Weights("a", True),), ()).unmet == ()
    assert PresetCard(preset, (need,), (Weights("a", None),), ()).unmet == (need,)


def test_the_largest_gpu_counts_by_what_is_free() -> None:
    need = Need(GPU, 40.0, 12.0, "H200")
    assert not need.met
    assert Need(GPU, 40.0, None).met


A100 = ("NVIDIA A100-PCIE-40GB", 40.0, 39.4)


def gpu_machine(*gpus: tuple[str, float, float], vllm: str = "0.26.0") -> Machine:
    return Machine("3.11", 16, 64.0, gpus, HERE, vllm)


def test_a_preset_for_a_gpu_is_held_against_what_is_free() -> None:
    gemma = card("gemma_low_latency", gpu_machine(("small", 8.0, 8.0), A100), free_gib=100.0)
    assert gemma.usable
    assert gemma.needs[0] == Need(GPU, 33.0, 39.4, A100[0], 40.0)
    assert [weights.name for weights in gemma.weights] == list(load_preset("gemma_low_latency").models)
    busy = card("gemma_low_latency", gpu_machine(("A100", 40.0, 20.0)), free_gib=100.0)
    assert [need.kind for need in busy.unmet] == [GPU]
    assert not busy.usable


def test_vllm_that_is_not_installed_is_what_is_missing() -> None:
    gemma = card("gemma_low_latency", gpu_machine(A100, vllm=""), free_gib=100.0)
    assert (gemma.unmet, gemma.library, gemma.usable) == ((), "vLLM", False)
    assert card("laptop", gpu_machine(A100, vllm="")).library == ""


def test_own_models_take_the_place_where_they_fit(tmp_path: Path) -> None:
    model = tmp_path / "größer.gguf"
    model.touch()
    laptop = card(models={"translator.model": str(model), "recogniser.model": str(tmp_path / "none")})
    assert [(weights.present, weights.own) for weights in laptop.weights] == [(False, True), (True, True)]
    unknown = card(models={"translator.model": "~nobody-of-this-name/x.gguf"})
    assert [weights.name for weights in unknown.missing] == ["~nobody-of-this-name/x.gguf"]
    remote = card("remote", models={"translator.model": str(model)})
    assert [weights.name for weights in remote.weights] == ["whisper-tiny.en"]
    assert remote.remote


def test_a_measured_speed_is_shown_with_its_preset() -> None:
    speed = Speed(real_time_factor=0.6, lag_s=1.5)
    assert card(speeds={"laptop": speed}).speed == speed
    assert card("remote", speeds={"laptop": speed}).speed is None


def test_a_preset_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "presets"
    folder.mkdir()
    for name, text in (("laptop", LAPTOP.read_text(encoding="utf-8")), ("broken", "id = 3")):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    monkeypatch.setattr("engine.presets.resources", lambda: tmp_path)
    cards, problems = preset_cards(MACHINE)
    assert [card.preset.id for card in cards] == ["laptop"]
    assert len(problems) == 1
    assert "broken" in problems[0]
