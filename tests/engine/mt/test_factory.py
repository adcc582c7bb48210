from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.alignatt.heads import HeadSetError
from engine.models import ModelError
from engine.mt import factory
from engine.mt.contract import Source, TranslationError, Translator
from engine.presets import Preset, load_preset, resources
from tests.engine.mt.adapters import describe
from tests.engine.mt.scripted import ScriptedTranslator


def laptop(**overrides: Any) -> Preset:
    return load_preset("laptop", {f"translator.{key}": value for key, value in overrides.items()})


def create(preset: Preset, told: list[float] | None = None) -> Translator:
    told = [] if told is None else told
    return factory.create_translator(preset, "en", "de", lambda fraction, _text: told.append(fraction))


@pytest.fixture
def heads_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of head sets that a test may fill; starts with the shared one of the packaged model."""
    folder = tmp_path / "heads" / "gemma-3-270m"
    folder.mkdir(parents=True)
    shared = resources() / "heads" / "gemma-3-270m" / "shared.json"
    (folder / "shared.json").write_text(shared.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(factory, "resources", lambda: tmp_path)
    return folder / "shared.json"


def change(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


@pytest.mark.models
def test_a_preset_becomes_a_warm_translator(heads_elsewhere: Path, caplog: pytest.LogCaptureFixture) -> None:
    told: list[float] = []
    with caplog.at_level(logging.WARNING, "surtitle.mt"):
        translator = create(laptop(), told)
    try:
        assert "No head set for en-de: using the shared heads of gemma-3-270m." in caplog.text
        assert translator.health.heads_note == "No head set for en-de: using the shared heads of gemma-3-270m."
        assert translator.health.self_test == "passed"
        assert translator.head_set_name == "gemma-3-270m/shared"  # type: ignore[attr-defined]
        assert translator.heads == ((13, 3), (11, 2), (11, 3), (12, 1))  # type: ignore[attr-defined]
        assert told == sorted(told)
        assert told[-1] == 1.0
        made = translator.draft("s", Source(("Good", "morning."), "en", "de"), (), 4, lambda: False)
        assert made.rows.shape == (len(made.token_ids), 2)
    finally:
        translator.close()


@pytest.mark.models
def test_heads_of_another_model_are_refused(heads_elsewhere: Path) -> None:
    change(heads_elsewhere, layers=28, query_heads=16, model="qwen3-1.7b")
    with pytest.raises(HeadSetError, match="28 layers of 16 heads"):
        create(laptop())


@pytest.mark.models
def test_heads_of_another_architecture_are_refused(heads_elsewhere: Path) -> None:
    change(heads_elsewhere, architecture="Qwen3ForCausalLM", model="qwen3-tiny")
    with pytest.raises(HeadSetError, match="is for the architecture Qwen3ForCausalLM, but gemma-3-270m is gemma3: "):
        create(laptop())


def test_heads_of_another_model_of_the_same_shape_are_noted(opened: list[factory.Order], heads_elsewhere: Path) -> None:
    own = create(laptop(adapter="", model="/models/gemma-3-270m-it.gguf")).health.heads_note
    other = create(laptop(adapter="", model="/models/my-own.gguf")).health.heads_note
    assert own == "No head set for en-de: using the shared heads of gemma-3-270m."
    assert other.startswith(f"{own} The heads were found in gemma-3-270m and are used with my-own.gguf: if")


@pytest.mark.models
def test_heads_found_with_another_prompt_are_used_and_noted(
    heads_elsewhere: Path, caplog: pytest.LogCaptureFixture
) -> None:
    change(heads_elsewhere, prompt_layout="chat-7")
    with caplog.at_level(logging.WARNING, "surtitle.mt"):
        create(laptop()).close()
    assert "found with the prompt chat-7, and are used with few_shot-1" in caplog.text


@pytest.mark.parametrize(("kind", "extra"), [("huggingface", "torch"), ("vllm", "gpu")])
def test_a_translator_that_is_not_here_names_its_extra(kind: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "_OPENERS", {})
    with pytest.raises(TranslationError, match=rf"The {kind} translator .* pip install 'surtitle\[{extra}\]'\.$"):
        create(laptop(kind=kind))


class Opened(ScriptedTranslator):
    """A translator by script that remembers what it was made from."""

    def __init__(self, order: factory.Order) -> None:
        super().__init__()
        self.order = order


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[factory.Order]:
    """What translators were ordered; none is loaded."""
    orders: list[factory.Order] = []
    monkeypatch.setattr(factory, "resolve", lambda model, progress, kind: Path(model))

    def order(made: factory.Order) -> Translator:
        orders.append(made)
        return Opened(made)

    monkeypatch.setattr(factory, "_OPENERS", dict.fromkeys(("llamacpp", "huggingface", "vllm"), order))
    monkeypatch.setattr(factory, "why_not", lambda kind: "")
    return orders


def test_a_translator_may_be_made_for_more_drafts_at_once(opened: list[factory.Order]) -> None:
    create(laptop())
    factory.create_translator(laptop(), "en", "de", lambda fraction, text: None, sessions=32)
    assert [order.sessions for order in opened] == [8, 32]


def test_torch_stands_in_for_llama_cpp(
    opened: list[factory.Order], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(factory, "why_not", lambda kind: "No module named 'llama_cpp'" if kind == "llamacpp" else "")
    translator = create(laptop(adapter=""))
    wanted = opened[0].preset.translator
    assert (wanted.kind, wanted.seam, wanted.model) == ("huggingface", "hf_qk_fast", "gemma-3-270m")
    assert (wanted.quantise, wanted.output_tokens) == ("int8", "latin")
    sentence = translator.health.stand_in
    assert "llama-cpp-python cannot be loaded (No module named 'llama_cpp')" in sentence
    assert "runs on torch instead, more slowly" in sentence
    assert sentence in caplog.text


def test_what_can_be_loaded_needs_no_stand_in(opened: list[factory.Order]) -> None:
    assert create(laptop(adapter="")).health.stand_in == ""
    assert opened[0].preset == laptop(adapter="")


def test_neither_llama_cpp_nor_torch_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "engine.mt.llamacpp", None)
    monkeypatch.setitem(sys.modules, "engine.mt.huggingface", None)
    with pytest.raises(
        TranslationError,
        match=r"^llama-cpp-python cannot be loaded .*, nor torch .*\(g\+\+\) .*`make demo` .*surtitle\[torch\]'\.$",
    ):
        create(laptop())


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """A description of an adapter, without its files."""
    describe(tmp_path, languages=("de",))
    return tmp_path


def test_an_adapter_brings_its_prompt(opened: list[factory.Order], adapter: Path) -> None:
    create(laptop(adapter=str(adapter), prompt="few_shot"))
    create(laptop(adapter="", prompt="few_shot"))
    assert [order.prompt for order in opened] == ["talks", "few_shot"]
    assert opened[0].adapter is not None
    assert opened[0].adapter.folder == adapter


def test_an_adapter_refuses_other_languages_before_anything_is_loaded(
    opened: list[factory.Order], adapter: Path
) -> None:
    with pytest.raises(TranslationError, match="does not translate en-fr, only en-de"):
        factory.create_translator(laptop(adapter=str(adapter)), "en", "fr", lambda fraction, text: None)
    assert not opened


def test_an_adapter_refuses_other_weights_before_anything_is_loaded(
    opened: list[factory.Order], adapter: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own.gguf"
    own.write_bytes(b"GGUF")
    with pytest.raises(TranslationError, match=r"with sha256 a5fd3b62230a…, but .*own.gguf has b83633aa7853…"):
        create(laptop(adapter=str(adapter), model=str(own)))
    assert not opened


def test_an_adapter_does_not_work_in_vllm(monkeypatch: pytest.MonkeyPatch, adapter: Path) -> None:
    monkeypatch.setattr(factory.fitting, "check", lambda preset, part: None)
    monkeypatch.setattr(factory, "resolve", lambda model, progress, kind: Path(model))
    with pytest.raises(TranslationError, match=r"'random' works in llama\.cpp and transformers, not in vLLM"):
        create(laptop(adapter=str(adapter), kind="vllm", seam="vllm_tap"))


def test_what_a_preset_says_of_vllm_reaches_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.mt import vllm

    class Opened(Exception):
        pass

    asked: dict[str, Any] = {}

    def open_vllm(*positional: Any, **named: Any) -> None:
        asked.update(named)
        raise Opened

    monkeypatch.setattr(vllm, "VllmTranslator", open_vllm)
    monkeypatch.setattr(factory.fitting, "check", lambda preset, part: None)
    monkeypatch.setattr(factory, "resolve", lambda model, progress, kind: Path(model))
    values = {
        "mt_vllm_enforce_eager": True, "mt_vllm_cudagraph_mode": "PIECEWISE", "mt_vllm_quantization": "fp8_per_channel",
    }  # fmt: skip
    with pytest.raises(Opened):
        create(laptop(kind="vllm", seam="vllm_tap", adapter="", **values))
    assert {name: asked[name] for name in values} == values


def test_transformers_that_cannot_be_loaded_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "resolve", lambda model, progress, kind: Path(model))
    monkeypatch.setitem(sys.modules, "engine.mt.huggingface", None)
    with pytest.raises(
        TranslationError, match=r"torch and transformers cannot be loaded .* pip install 'surtitle\[torch\]'\.$"
    ):
        create(laptop(kind="huggingface", seam="hf_qk_fast"))


@pytest.mark.parametrize(("kind", "seam"), [("llamacpp", "vllm_tap"), ("huggingface", "cb_eval")])
def test_a_seam_of_another_translator_is_refused(kind: str, seam: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "resolve", lambda model, progress, kind: Path(model))
    with pytest.raises(TranslationError, match=f"no seam '{seam}'"):
        create(laptop(kind=kind, seam=seam))


def check(preset: Preset) -> None:
    factory.check_translator(preset, "en", "de")


@pytest.mark.parametrize("look", [create, check])
def test_a_model_that_does_not_exist(look: Callable[[Preset], object]) -> None:
    with pytest.raises(ModelError, match="no model at '/nowhere/at-all"):
        look(laptop(model="/nowhere/at-all.gguf"))


@pytest.mark.parametrize("look", [create, check])
def test_heads_that_do_not_exist(look: Callable[[Preset], object]) -> None:
    with pytest.raises(HeadSetError, match="no heads for nothing"):
        look(laptop(heads="nothing"))


@pytest.mark.parametrize("look", [create, check])
@pytest.mark.parametrize(
    ("kind", "seam", "sentence"),
    [
        ("llamacpp", "cb_eval", "cannot be read: Is a directory"),
        ("huggingface", "hf_qk_fast", "holds no model: there is no config.json in it"),
    ],
)
def test_a_folder_that_holds_no_model(
    look: Callable[[Preset], object], kind: str, seam: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(TranslationError, match=sentence):
        look(laptop(kind=kind, seam=seam, model=str(tmp_path), adapter=""))


@pytest.mark.models
def test_a_check_loads_no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factory, "resolve", lambda *_: pytest.fail("only looked at"))
    check(laptop())
