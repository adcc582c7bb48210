"""Presets: the shipped ones are valid, and a wrong value is one sentence that names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine import presets
from engine.alignatt.heads import load_head_set
from engine.asr.qwen_text import ALIGNED
from engine.presets import CONTEXT_GIB, LANGUAGE_NAMES, PresetError, load_preset, preset_ids, resources

LAPTOP = (resources() / "presets" / "laptop.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("preset_id", preset_ids())
def test_shipped_presets_are_valid(preset_id: str) -> None:
    preset = load_preset(preset_id)
    assert preset.id == preset_id
    assert preset.title
    assert preset.description.endswith(".")
    assert preset.pairs
    assert all({source, target} <= LANGUAGE_NAMES.keys() for source, target in preset.pairs)
    for source, target in preset.pairs:
        preset.check_pair(source, target)


def test_the_order_follows_what_they_ask_of_a_machine() -> None:
    order = [load_preset(name) for name in preset_ids()]
    assert [preset.id for preset in order[:2]] == ["laptop", "remote"]
    chunks = [preset.recogniser.chunk_ms for preset in order if preset.gpu_gib]
    assert len(chunks) == len(order) - 2
    assert chunks == sorted(chunks)


def test_laptop_says_what_it_is() -> None:
    assert load_preset("laptop").quality == "demo quality"
    assert load_preset("laptop").needs.licences


def test_a_value_may_be_overridden_by_its_dotted_key() -> None:
    preset = load_preset("laptop", {"recogniser.model": "/models/base", "policy.theta": 0.4, "memory_gib.mt": 2})
    assert (preset.recogniser.model, preset.policy.theta, preset.memory_gib.mt) == ("/models/base", 0.4, 2.0)
    assert load_preset("laptop").recogniser.model == "whisper-tiny.en"


@pytest.mark.parametrize("preset_id", [name for name in preset_ids() if load_preset(name).uses_vllm])
def test_presets_for_a_gpu_have_what_vllm_needs(preset_id: str) -> None:
    preset = load_preset(preset_id)
    assert {source for source, _ in preset.pairs} <= ALIGNED  # words of others would have no times
    for source, target in preset.pairs:
        heads, _ = load_head_set(resources() / "heads" / preset.translator.heads, f"{source}-{target}")
        assert len(heads.top(preset.policy.top_k)) == preset.policy.top_k
        assert heads.prompt_layout == "chat-1"
        assert heads.doubt(preset.translator.model) == ""
    assert preset.translator.prompt == "chat"
    assert preset.needs.gpu_gib == preset.gpu_gib
    assert len(preset.models) == 3


def test_what_a_preset_asks_of_a_gpu_follows_its_split() -> None:
    preset = load_preset("qwen_low_latency", {"memory_gib.mt": 20, "needs.gpu_gib": 0})
    assert preset.gpu_gib == pytest.approx(4 + 3.25 + 20 + 3 * CONTEXT_GIB)
    assert preset.part_gpu_gib("translator") == pytest.approx(20 + CONTEXT_GIB)
    assert load_preset("qwen_low_latency", {"needs.gpu_gib": 30}).gpu_gib == 30
    assert load_preset("laptop").gpu_gib == load_preset("laptop").part_gpu_gib("recogniser") == 0
    assert not load_preset("remote").uses_vllm
    assert load_preset("remote").models == ("whisper-tiny.en",)


def sentence(preset_id: str, overrides: dict[str, Any] | None = None) -> str:
    with pytest.raises(PresetError) as caught:
        load_preset(preset_id, overrides)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"recogniser.chunk_ms": 5}, "at 'recogniser.chunk_ms'"),
        ({"recogniser.chunk_ms": "often"}, "at 'recogniser.chunk_ms'"),
        ({"recogniser.kind": "parrot"}, "at 'recogniser.kind'"),
        ({"recogniser.max_tail_s": 30}, "at 'recogniser.max_tail_s'"),
        ({"recogniser.volume": 11}, "'recogniser.volume' is not a preset key."),
        ({"translator.seam": "guess"}, "at 'translator.seam'"),
        ({"translator.url": "http://host"}, "at 'translator.url'"),
        ({"policy.theta": 2}, "at 'policy.theta'"),
        ({"policy.name": "hope"}, "at 'policy.name'"),
        ({"policy.unknown": 1}, "'policy.unknown' is not a preset key."),
        ({"pairs": [["en"]]}, "at 'pairs.0"),
        ({"needs.gpu_gib": -1}, "at 'needs.gpu_gib'"),
        ({"memory_gib.asr": 4}, "at 'memory_gib': asr and aligner are given together"),
        ({"nonsense": 1}, "'nonsense' is not a preset key."),
        ({"": 1}, "'' is not a preset key."),
        (
            {"translator": 1},
            "'translator' of preset 'laptop' is a group of keys: name one of them, as in translator.KEY=",
        ),
        ({"policy": 1}, "'policy' of preset 'laptop' is a group of keys"),
        ({"title.long": "x"}, "'title.long' is not a preset key."),
        ({"pairs.0": "x"}, "'pairs.0' is not a preset key."),
    ],
)
def test_a_wrong_value_is_one_sentence_that_names_it(overrides: dict[str, Any], words: str) -> None:
    assert words in sentence("laptop", overrides)


@pytest.mark.parametrize("preset_id", ["nonsense", "", "../presets/laptop", "LAPTOP", "laptop.toml"])
def test_an_unknown_preset_names_the_known_ones(preset_id: str) -> None:
    assert sentence(preset_id) == f"There is no preset '{preset_id}'; presets are: {', '.join(preset_ids())}."


def test_a_pair_that_is_not_offered_names_those_that_are() -> None:
    with pytest.raises(PresetError, match=r"^Preset 'laptop' does not translate de-en; it offers en-de, en-fr"):
        load_preset("laptop").check_pair("de", "en")


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of presets that a test may fill."""
    (tmp_path / "presets").mkdir()
    monkeypatch.setattr(presets, "resources", lambda: tmp_path)
    return tmp_path / "presets"


@pytest.mark.parametrize("data", [b"title = ", b"\xff\xfe", b"a = 1\na = 2\n"])
def test_a_file_that_cannot_be_read_is_one_sentence(elsewhere: Path, data: bytes) -> None:
    (elsewhere / "mine.toml").write_bytes(data)
    assert "mine.toml cannot be read" in sentence("mine")


def test_a_preset_that_lacks_something_says_what(elsewhere: Path) -> None:
    (elsewhere / "mine.toml").write_text(LAPTOP.replace('title = "Laptop"', ""), encoding="utf-8")
    assert sentence("mine") == "Preset 'mine' is not valid at 'title': Field required."
    assert preset_ids() == ["mine"]


def test_a_preset_that_is_not_valid_comes_last(elsewhere: Path) -> None:
    (elsewhere / "a.toml").write_text("title = 1", encoding="utf-8")
    (elsewhere / "laptop.toml").write_text(LAPTOP, encoding="utf-8")
    assert preset_ids() == ["laptop", "a"]


def test_a_preset_has_the_name_of_its_file(elsewhere: Path) -> None:
    (elsewhere / "mine.toml").write_text(LAPTOP, encoding="utf-8")
    assert sentence("mine") == "Preset 'mine' is not valid at 'id': 'laptop' is not the name of its file."
    (elsewhere / "mine.toml").write_text(LAPTOP.replace('id = "laptop"', ""), encoding="utf-8")
    assert load_preset("mine").id == "mine"
