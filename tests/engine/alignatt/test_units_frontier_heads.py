"""Units, frontier and head sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.alignatt.frontier import Frontier
from engine.alignatt.heads import HeadSetError, head_set_from_json, head_set_to_json, load_head_set
from engine.alignatt.units import separator, split_units
from engine.presets import resources


@pytest.mark.parametrize(
    ("text", "language", "units"),
    [
        ("Well, yes, of course,", "en", ["Well,", "yes,", "of", "course,"]),
        ("so - as I said", "en", ["so -", "as", "I", "said"]),
        ("  two   spaces ", "en", ["two", "spaces"]),
        ("我们，走。", "zh", ["我", "们，", "走。"]),
        ("用AlignAtt算法", "zh", ["用", "AlignAtt", "算", "法"]),
        ("", "en", []),
    ],
)
def test_split_units(text: str, language: str, units: list[str]) -> None:
    assert split_units(text, language) == units
    assert separator(language).join(units) == " ".join(text.split())


def test_all_committed_makes_every_unit_accessible() -> None:
    units = split_units("Well, yes, of course,", "en")
    assert Frontier(len(units), len(units)).accessible(0) == 4


@pytest.mark.parametrize(("committed", "units"), [(-1, 3), (4, 3)])
def test_a_frontier_outside_its_units_is_refused(committed: int, units: int) -> None:
    with pytest.raises(ValueError, match="does not lie within"):
        Frontier(committed, units)


def good() -> dict[str, object]:
    return json.loads((resources() / "heads" / "gemma-3-270m" / "shared.json").read_text())


def test_shipped_head_sets_are_valid_and_come_back_unchanged() -> None:
    files = list((resources() / "heads").glob("*/*.json"))
    assert files
    for path in files:
        data = json.loads(path.read_text())
        assert head_set_to_json(head_set_from_json(data, path.name)) == data


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema version 2"),
        ({"query_row": "both"}, "query_row must be one of"),
        ({"heads": []}, "names no heads"),
        ({"heads": [{"layer": 99, "head": 0}]}, "outside 18 layers"),
        ({"heads": [{"layer": 1, "head": 0}, {"layer": 1, "head": 0}]}, "twice"),
        ({"heads": [{"layer": 1}]}, "whole 'layer' and 'head'"),
        ({"heads": [{"layer": 1.5, "head": 0}]}, "whole 'layer' and 'head'"),
        ({"heads": [3]}, "whole 'layer' and 'head'"),
        ({"heads": 5}, "whole 'layer' and 'head'"),
        ({"layers": "18"}, "'layers' must be a whole number"),
        ({"query_heads": None}, "'query_heads' must be a whole number"),
        ({"colour": 1}, "unknown key 'colour'"),
    ],
)
def test_a_bad_head_set_is_one_sentence(change: dict[str, object], message: str) -> None:
    with pytest.raises(HeadSetError, match=message):
        head_set_from_json({**good(), **change}, "x.json")


def test_a_head_set_lacking_a_key_is_named() -> None:
    data = good()
    del data["query_row"]
    with pytest.raises(HeadSetError, match="lacks 'query_row'"):
        head_set_from_json(data, "x.json")


def test_heads_of_another_model_are_refused() -> None:
    with pytest.raises(HeadSetError, match="is for 18 layers of 4 heads, but other has 28 of 16"):
        head_set_from_json(good(), "x.json").check_model("other", 28, 16)


@pytest.mark.parametrize(
    ("of_the_set", "of_the_model", "fits"),
    [
        ("Gemma3ForCausalLM", "gemma3", True),
        ("gemma3", "Gemma3ForConditionalGeneration", True),
        ("Gemma4ForConditionalGeneration", "Gemma4TextConfig", True),
        ("Gemma4ForConditionalGeneration", "Gemma4UnifiedForConditionalGeneration", True),
        ("Qwen3ForCausalLM", "Qwen3Config", True),
        ("Gemma3ForCausalLM", "", True),
        ("", "gemma3", True),
        ("Gemma3ForCausalLM", "Gemma3nForCausalLM", False),
        ("Qwen3ForCausalLM", "Qwen2ForCausalLM", False),
        ("Qwen3ForCausalLM", "qwen3moe", False),
        ("gemma3", "LlamaForCausalLM", False),
    ],
)
def test_heads_of_another_architecture_are_refused(of_the_set: str, of_the_model: str, fits: bool) -> None:
    heads = head_set_from_json({**good(), "architecture": of_the_set}, "x.json")
    if fits:
        heads.check_model("other", 18, 4, of_the_model)
        return
    with pytest.raises(HeadSetError, match=f"for the architecture {of_the_set}, but other is {of_the_model}: name"):
        heads.check_model("other", 18, 4, of_the_model)


def test_heads_of_another_model_of_the_same_shape_are_said() -> None:
    heads = head_set_from_json({**good(), "model": "qwen3-1.7b"}, "x.json")
    for same in ("qwen3-1.7b", "Qwen/Qwen3-1.7B", "/models/Qwen3-1.7B-Q8_0.gguf", "hub/models--Qwen--Qwen3-1.7B/abc"):
        assert heads.doubt(same) == ""
    assert heads.doubt("Qwen/Qwen3-0.6B").startswith("The heads were found in qwen3-1.7b and are used with Qwen3-0.6B:")


def test_directions_without_a_set_use_the_shared_heads_and_say_so(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "shared.json").write_text(json.dumps(good()))
    heads, note = load_head_set(folder, "en-xx")
    assert heads.direction == "shared"
    assert note
    assert "en-xx" in note
    (folder / "shared.json").write_text("{")
    with pytest.raises(HeadSetError, match="cannot be read"):
        load_head_set(folder, "en-xx")
    with pytest.raises(HeadSetError, match="There are no heads"):
        load_head_set(tmp_path / "nothing", "en-xx")
