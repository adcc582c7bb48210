"""What `surtitle doctor` says of a machine where the translator's library could not be compiled."""

from __future__ import annotations

import pytest

from app.commands import doctor
from engine.presets import load_preset

MODELS = [
    {"name": name, "present": True, "where": "/models", "bytes": 1} for name in ("whisper-tiny.en", "gemma-3-270m")
]
ALONE = {"models": MODELS, "broken": {"llamacpp": "No module named 'llama_cpp'"}}
NEITHER = {"models": MODELS, "broken": {**ALONE["broken"], "huggingface": "No module named 'torch'"}}  # type: ignore[dict-item]


@pytest.fixture(autouse=True)
def no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_answers", lambda url: False)


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
