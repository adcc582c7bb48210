"""The benchmark of a whole session: an engine without models, its end and its death, bad input; then the real one."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import soundfile

from engine.__main__ import main
from engine.alignatt.heads import load_head_set
from engine.benchmarks import session as benchmark
from engine.benchmarks import session_end, session_play, session_program, session_random
from engine.benchmarks.mt_subject import BenchmarkError
from engine.benchmarks.processes import Sampler, Usage
from engine.benchmarks.session_random import TOKENS_PER_WORD, Measured, RandomModels, stand_ins
from engine.mt.contract import Source
from engine.presets import load_preset
from engine.schemas import read_log
from tests.engine.benchmarks import scripted_engine
from tests.engine.mt.scripted import ScriptedTranslator

FIXTURE = Path(__file__).parents[2] / "fixtures" / "session_log.jsonl"
LIMIT_S = 60.0


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    benchmark.add_arguments(parser)
    return parser.parse_args(words)


@pytest.fixture
def voice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording that the scripted voice activity hears, and the engine without models."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(session_play, "run", scripted_engine.run)
    path = tmp_path / "voice.wav"
    soundfile.write(path, np.ones(4 * 16_000, np.float32), 16_000, subtype="FLOAT")
    return path


# ---------------------------------------------------------------- the engine, from inside


def test_a_session_is_measured_from_its_start_to_its_end(
    voice: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "session.json"
    assert main(["benchmark", "session", str(voice), "--minutes", "0.07", "--json", str(target)]) == 0
    figures = json.loads(target.read_text())
    assert figures["complete"] is True
    assert figures["audio_s"] == pytest.approx(4.2)
    expected = {"capture", "voice_activity", "recogniser", "wait", "draft", "decision", "caption", "whole"}
    assert set(figures["stage_ms"]) == expected
    assert figures["recogniser"]["updates"] >= 4  # of 13; a busy machine hears several pieces at once
    assert 0 < figures["recogniser"]["real_time_factor"] < 1
    assert figures["overlap"]["updates_begun_during_translation"] >= 1
    assert 0 < figures["overlap"]["share_of_translator"] < 1
    assert figures["translator"]["drafts"] >= 2
    assert figures["rows"]["expected"] > 0
    assert figures["rows"]["missing"] == figures["text"]["retractions"] == 0
    assert figures["text"]["target_words"] > 0
    assert figures["start_up_s"]["all"] >= figures["start_up_s"]["process"] > 0
    assert figures["end"]["how"] == "stopped"
    assert figures["end"]["drained_s"] is not None
    assert figures["end"]["processes_gone_s"] is not None
    assert figures["memory"]["peak_total_mib"] >= 0
    out = capsys.readouterr().out
    assert "Loading ears" in out
    assert "updates begun during translation" in " ".join(out.split())


def test_an_engine_is_killed_while_it_works(voice: Path, tmp_path: Path) -> None:
    target = tmp_path / "session.json"
    assert main(["benchmark", "session", str(voice), "--minutes", "0.05", "--kill", "--json", str(target)]) == 0
    end = json.loads(target.read_text())["end"]
    assert "translation" in end["while"]
    assert end["processes_gone_s"] is not None
    assert end["processes_left"] == 0
    assert end["gpu_free_s"] is None


def test_what_was_measured_before_the_engine_died_is_kept(
    voice: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "SAVE_EVERY_S", 1.0)
    monkeypatch.setattr(benchmark, "TELL_EVERY_S", 1.5)
    played = session_play.play

    def dying(engine: session_play.EngineProcess, recording: session_play.Recording) -> Any:
        for sent_s in played(engine, recording):
            if sent_s > 2.5:
                psutil.Process(engine.pid).kill()
            yield sent_s

    monkeypatch.setattr(benchmark, "play", dying)
    target = tmp_path / "session.json"
    assert main(["benchmark", "session", str(voice), "--json", str(target)]) == 1
    figures = json.loads(target.read_text())
    assert figures["complete"] is False
    assert figures["failed"] == "The engine process ended with exit code -9: see its log."
    assert figures["audio_s"] == pytest.approx(2.0)
    assert figures["recogniser"]["updates"] > 0
    printed = capsys.readouterr()
    assert printed.err == "The engine process ended with exit code -9: see its log.\n"
    assert "minutes: " in printed.out


def test_models_that_cannot_be_loaded_are_one_sentence(voice: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "session", str(voice), "--set", "title=fails"]) == 2
    assert capsys.readouterr().err == "There is no model here.\n"


def test_loading_that_leaves_no_time_is_said(voice: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "session", str(voice), "--within", "0.1"]) == 1
    assert "Loading has left 0 s of the 0.1 minutes: give more with --within." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--minutes", "0"], "Minutes must be greater than 0."),
        (["--within", "-1"], "Minutes must be greater than 0."),
        (["--minutes", "nan"], "Minutes must be greater than 0."),
        (["--kill", "--window"], "leave out --terminal, --window and --fast."),
        (["--preset", "nowhere"], "There is no preset 'nowhere'"),
        (["--to", "zh"], "does not translate en-zh"),
        (["--set", "recogniser"], "'recogniser' is not KEY=VALUE."),
        (["--set", "recogniser.chunk_ms=7"], "is not valid at 'recogniser.chunk_ms'"),
        (["--random-weights"], "preset 'laptop' runs whisper and llamacpp."),
        (["/nowhere.wav"], "'/nowhere.wav' cannot be read as a recording"),
        ([str(FIXTURE)], "cannot be read as a recording"),
        (["--json", f"{FIXTURE}/figures.json"], "figures.json' cannot be written: "),
    ],
)
def test_bad_input_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "session", *words]) == 2
    printed = capsys.readouterr().err
    assert sentence in printed
    assert printed.count("\n") == 1


def test_a_recording_without_sound_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.wav"
    soundfile.write(path, np.zeros(800, np.float32), 16_000)
    with pytest.raises(BenchmarkError, match="shorter than a second"):
        session_play.read_recording(path)


@pytest.mark.models
def test_the_laptop_preset_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    target = tmp_path / "session.json"
    assert main(["benchmark", "session", "--minutes", "0.15", "--kill", "--json", str(target)]) == 0
    figures = json.loads(target.read_text())
    assert figures["models"] == {"recogniser": "whisper-tiny.en", "translator": "gemma-3-270m"}
    assert figures["recogniser"]["updates"] > 2
    assert figures["rows"]["expected"] > 0
    assert figures["text"]["retractions"] == 0


# ---------------------------------------------------------------- the end


def test_what_does_not_end_is_counted_and_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_end, "LIMIT_S", 0.2)
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as stays:
        end = session_end.until_free([psutil.Process(stays.pid)], None, time.monotonic())
        assert stays.wait(LIMIT_S)
    assert end == {"processes_gone_s": None, "processes_left": 1, "gpu_free_s": None}


def test_gpu_memory_is_free_when_it_is_what_it_was() -> None:
    class Gpu:
        idle_gib = 1.0
        looks = 0

        def used_gib(self) -> float:
            self.looks += 1
            return 30.0 if self.looks < 4 else 1.05

    gpu = Gpu()
    end = session_end.until_free([], gpu, time.monotonic())  # type: ignore[arg-type]
    assert gpu.looks == 4
    assert end["processes_gone_s"] <= end["gpu_free_s"] < LIMIT_S


# ---------------------------------------------------------------- random weights


@pytest.fixture
def with_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_random, "find_spec", lambda name: name)


@pytest.mark.usefixtures("with_vllm")
def test_models_of_a_preset_are_known_by_their_names(tmp_path: Path) -> None:
    tiny = {"recogniser.model": "owner/Qwen3-ASR-tiny", "translator.model": "gemma-4-tiny"}
    preset = load_preset("gemma_low_latency", tiny)
    found = stand_ins(preset, ("en", "de"), tmp_path, on_gpu=False)
    assert found.names == {
        "recogniser": "qwen3-asr-tiny", "aligner": "qwen3-forced-aligner-tiny", "translator": "gemma-4-tiny",
    }  # fmt: skip
    changed = load_preset("gemma_low_latency", found.overrides)
    assert (Path(changed.translator.model) / "tokenizer.json").is_file()
    assert changed.translator.dtype == "float32"
    assert changed.memory_gib.mt == changed.gpu_gib == 0
    heads, note = load_head_set(Path(changed.translator.heads), "en-de")
    assert note is None
    assert (heads.layers, heads.query_heads) == (12, 4)


@pytest.mark.usefixtures("with_vllm")
def test_on_a_gpu_memory_and_modes_are_the_preset_s(tmp_path: Path) -> None:
    preset = load_preset(
        "gemma_low_latency", {"recogniser.model": "qwen3-asr-tiny", "translator.model": "gemma-4-tiny"}
    )
    changed = load_preset("gemma_low_latency", stand_ins(preset, ("en", "de"), tmp_path, on_gpu=True).overrides)
    assert changed.memory_gib == preset.memory_gib
    assert changed.translator.mt_vllm_enforce_eager == preset.translator.mt_vllm_enforce_eager


@pytest.mark.usefixtures("with_vllm")
def test_unknown_dimensions_are_refused(tmp_path: Path) -> None:
    preset = load_preset("gemma_low_latency", {"translator.model": "owner/colossus"})
    with pytest.raises(BenchmarkError, match=r"The dimensions of 'owner/colossus' are not known here; known are gemma"):
        stand_ins(preset, ("en", "de"), tmp_path, on_gpu=True)


def test_random_weights_without_vllm_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session_random, "find_spec", lambda name: None)
    assert main(["benchmark", "session", "--preset", "gemma_low_latency", "--random-weights"]) == 2
    assert "vLLM is not installed here" in capsys.readouterr().err


def test_a_tokeniser_that_is_made_up_reads_its_words_and_the_prompt(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from engine.benchmarks.speech_checkpoints import sentence
    from engine.benchmarks.text_checkpoints import write
    from engine.mt.hf_tokens import HfTokens
    from engine.mt.prompt import ChatLayout

    tokeniser = transformers.AutoTokenizer.from_pretrained(write("gemma-4-tiny", tmp_path))
    tokens = HfTokens(tokeniser, "gemma4_text", ())
    words = sentence(14, 1)
    assert len(tokeniser) == 4096
    prompt = ChatLayout(tokens.chat_template).render(Source(tuple(words), "en", "de"))
    found = tokens.tokenise(prompt)
    assert found.ids[0] == tokeniser.bos_token_id == 2
    assert b"".join(tokens.piece(token, control=True) for token in found.ids).decode() == prompt.text
    assert len(tokens.encode(" " + " ".join(words))) < 3 * len(words)


def test_a_made_up_draft_ends_where_a_translation_would_and_looks_where_it_would() -> None:
    inner = ScriptedTranslator()
    measured = Measured(inner)  # type: ignore[arg-type]
    units = tuple(f"word{n}" for n in range(20))
    draft = measured.draft("a", Source(units[:4], "en", "de"), (), 16, lambda: False)
    assert inner.calls == 1
    assert draft.rows.argmax(axis=1).tolist() == [0, 0, 1, 2][: len(draft.token_ids)]
    np.testing.assert_allclose(draft.rows.sum(axis=1) + draft.prompt + draft.suffix, 1, rtol=1e-6)
    longer = measured.draft("a", Source(units, "en", "de"), tuple(range(10)), 4, lambda: False)
    assert longer.finish == "length"
    assert longer.rows.argmax(axis=1).tolist() == [int((10 + n) / TOKENS_PER_WORD) for n in range(4)]
    used_up = measured.draft("a", Source(units, "en", "de"), tuple(range(19)), 4, lambda: False)
    assert len(used_up.token_ids) == 1
    assert measured.draft("a", Source(units, "en", "de"), (), 4, lambda: True).finish == "cancelled"
    assert measured.count_tokens("two words") == 2


def test_arguments_of_vllm_without_a_gpu() -> None:
    assert RandomModels("cpu")._small() == {"kv_cache_memory_bytes": 64 << 20}
    assert RandomModels("cuda")._small() == {}


# ---------------------------------------------------------------- the whole program, from outside


class Sampled:
    """What a sampler has seen of an app and its engine."""

    def __init__(self) -> None:
        self.usage = {1: Usage("app", 1.5, 100.2, [100.2]), 2: Usage("engine", 2.0, 600.0, [500.0, 600.0])}
        self.peak_total_mib = 700.2


def test_figures_of_a_log() -> None:
    lines = read_log(FIXTURE)
    figures = session_program.figures_of(lines, Sampled(), 3.0, arguments("--fast"))  # type: ignore[arg-type]
    assert figures["pace"] == "fast"
    assert figures["real_time_factor"] == pytest.approx(2.0 / figures["audio_s"], abs=0.001)
    assert figures["processes"][1].items() >= {"name": "engine", "cpu_s": 2.0, "peak_mib": 600}.items()
    assert figures["peak_total_mib"] == 700
    assert figures["machine"]["cores"] >= 1
    assert json.loads(json.dumps(figures)) == figures
    session_program.show(figures)


def test_a_session_that_fails_is_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(tmp_path / "nowhere.wav"), "--terminal", "--json", str(tmp_path / "figures.json")]
    assert benchmark.run(arguments(*words)) == 1
    assert "The session ended with status 2." in capsys.readouterr().err
    assert not (tmp_path / "figures.json").exists()


def test_a_program_and_its_child_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.benchmarks.processes.SAMPLE_S", 0.02)
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; sys.stdin.read()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as program:
        sampler = Sampler(program.pid)
        end_s = time.monotonic() + LIMIT_S
        while sum(len(usage.own_mib) > 1 for usage in sampler.usage.copy().values()) < 2:
            assert time.monotonic() < end_s, "two processes were not seen"
            time.sleep(0.02)
        program.communicate()
        sampler.stop()
    assert program.pid in sampler.usage
    assert all(usage.peak_mib > 0 and max(usage.own_mib) > 0 for usage in sampler.usage.values())
    assert sampler.peak_total_mib >= max(usage.peak_mib for usage in sampler.usage.values())


def test_the_end_of_a_program_ends_its_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.benchmarks.processes.SAMPLE_S", 0.01)
    with subprocess.Popen([sys.executable, "-c", ""]) as program:
        sampler = Sampler(program.pid)
    sampler._thread.join(LIMIT_S)
    assert not sampler._thread.is_alive()
    sampler.stop()
