"""Qwen3-ASR and its aligner in vLLM's CPU engine, each in a process of its own, against transformers' classes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from engine.asr import qwen_text
from engine.asr.contract import SAMPLE_RATE
from engine.asr.factory import LoadedRecogniser
from engine.asr.qwen import QwenDecoder
from engine.asr.qwen_models import QwenModels, SpeechSettings
from engine.asr.speech_engine import RecognitionError, start
from engine.benchmarks.speech_checkpoints import SHAPES, sentence, write
from engine.presets import load_preset
from tests.engine.asr.helpers import Reader
from tests.vllm_engine.speech import save

TINY, ALIGNER = "qwen3-asr-tiny", "qwen3-forced-aligner-tiny"
SETTINGS = SpeechSettings(sessions=4, dtype="float32", enforce_eager=True, kv_cache_gib=(0.1, 0.1))
NOISE = np.random.default_rng(3).normal(0, 0.1, 4 * SAMPLE_RATE).astype(np.float32)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Where both checkpoints are, and the same models in transformers."""
    root = tmp_path_factory.mktemp("speech")
    return {name: (root / name, save(name, root / name)) for name in (TINY, ALIGNER)}


@pytest.fixture(scope="module")
def models(folders: dict[str, Any]) -> Iterator[QwenModels]:
    made = QwenModels(folders[TINY][0], folders[ALIGNER][0], SETTINGS)
    yield made
    made.close()


def inputs(folder: Path, text: str, audio: Any) -> dict[str, Any]:
    """What transformers' own processor makes of a prompt and audio."""
    import torch
    from transformers import AutoTokenizer, Qwen3ASRFeatureExtractor

    features = Qwen3ASRFeatureExtractor()(
        audio, sampling_rate=SAMPLE_RATE, padding=True, return_attention_mask=True, return_tensors="pt"
    )
    assert features["attention_mask"].sum() == 400  # 4 s, and 13 tokens for each whole second
    tokens = 4 * 13
    text = text.replace(qwen_text.AUDIO_PAD, qwen_text.AUDIO_PAD * tokens)
    ids = AutoTokenizer.from_pretrained(folder).encode(text, add_special_tokens=False, return_tensors="pt")
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "input_features": features["input_features"],
        "input_features_mask": features["attention_mask"],
    }


def test_the_answer_is_that_of_transformers(models: QwenModels, folders: dict[str, Any]) -> None:
    import torch
    from transformers import AutoTokenizer

    folder, reference = folders[TINY]
    head = qwen_text.answer_head("English", " ".join(sentence(4, 1)))
    given = inputs(folder, qwen_text.chat("terms") + head, NOISE)
    with torch.inference_mode():
        made = reference.generate(**given, max_new_tokens=12, do_sample=False)[0, given["input_ids"].shape[1] :]
    expected = AutoTokenizer.from_pretrained(folder).decode([int(one) for one in made], skip_special_tokens=False)
    assert models.transcribe(NOISE, "terms", head, 12, exactly=True) is not None
    assert models.transcribe(NOISE, "terms", head, 12) == expected.split("<|im_end|>")[0].split("<|endoftext|>")[0]


def test_times_are_those_of_transformers(models: QwenModels, folders: dict[str, Any]) -> None:
    import torch

    folder, reference = folders[ALIGNER]
    words = [word.rstrip(".") for word in sentence(9, 2)]
    text = qwen_text.AUDIO + "".join(word + 2 * qwen_text.TIMESTAMP for word in words)
    given = inputs(folder, text, NOISE)
    with torch.inference_mode():
        logits = reference(**given).logits[0]
    marks = given["input_ids"][0] == SHAPES[ALIGNER].number(qwen_text.TIMESTAMP)
    assert models.align(NOISE, words) == logits[marks].argmax(-1).tolist()
    assert models.class_s == 0.08


def test_words_beyond_the_room_get_no_times(models: QwenModels) -> None:
    classes = models.align(NOISE, ["b" * 40] * 200)
    assert classes is not None
    assert 0 < len(classes) < 400
    assert models.align(NOISE, []) == []


def test_sessions_share_the_models_and_decode_at_the_same_time(models: QwenModels) -> None:
    loaded = LoadedRecogniser(load_preset("laptop").recogniser, lambda context: decoder(models), models.close)

    def run() -> list[list[str]]:
        stream, reader = loaded.open(), Reader()
        for second in range(4):
            piece = NOISE[second * SAMPLE_RATE : (second + 1) * SAMPLE_RATE]
            reader.take(stream.push(piece, float(second)))
        reader.take(stream.finish())
        stream.close()
        return [[word.text for word in one.committed] for one in reader.closed]

    alone, together = run(), []
    threads = [threading.Thread(target=lambda: together.append(run())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, alone)) > 0
    assert together == [alone] * 4


def decoder(models: QwenModels) -> QwenDecoder:
    return QwenDecoder(models, "en", "terms", forced_tokens_per_s=4.0)


def test_a_decode_is_cancelled(models: QwenModels) -> None:
    asked = iter(range(1000))
    assert models.transcribe(NOISE, "", "", 1000, lambda: next(asked) > 3, exactly=True) is None
    session = decoder(models)
    session.close()
    assert session.decode(NOISE, ()) == []
    assert models.transcribe(NOISE, "", "", 4, exactly=True) is not None  # the models live on


def test_audio_of_every_length(models: QwenModels) -> None:
    session = decoder(models)
    for samples in (1600, 8000, 16_001, 29 * SAMPLE_RATE):
        words = session.decode(np.resize(NOISE, samples), ())
        assert all(0 <= word.start_s <= word.end_s <= samples / SAMPLE_RATE for word in words)


def test_folders_that_hold_no_such_model(folders: dict[str, Any], tmp_path: Path) -> None:
    asr, aligner = folders[TINY][0], folders[ALIGNER][0]
    with pytest.raises(RecognitionError, match=r"holds no model: there is no config\.json in it\.$"):
        QwenModels(tmp_path, aligner, SETTINGS)
    with pytest.raises(RecognitionError, match=r"holds no forced aligner: its config\.json names no timestamps"):
        QwenModels(asr, asr, SETTINGS)
    without = write(TINY, tmp_path / "without")
    with pytest.raises(RecognitionError, match=r"holds no weights: there is no file \*\.safetensors in it\.$"):
        QwenModels(without, aligner, SETTINGS)


def test_what_stops_a_process_of_vllm_is_in_the_sentence(folders: dict[str, Any]) -> None:
    greedy = replace(SETTINGS, kv_cache_gib=(100_000.0, 0.1))
    with pytest.raises(RecognitionError, match=r"^vLLM could not start .*less than requested memory for kv"):
        start(greedy.engine(folders[TINY][0], "recogniser", True, {}))


KILLED = """
import sys, time
from pathlib import Path
from engine.asr.qwen_models import AUDIO, MODEL_TOKENS, SpeechSettings
from engine.asr.speech_engine import start
if __name__ == "__main__":
    settings = SpeechSettings(sessions=1, dtype="float32", enforce_eager=True, kv_cache_gib=(0.1, 0.1))
    engine = start(settings.engine(Path(sys.argv[1]), "recogniser", True, {}))
    print("ready", flush=True)
    time.sleep(600)
"""


def test_an_engine_core_dies_with_the_process_that_started_it(folders: dict[str, Any], tmp_path: Path) -> None:
    script = tmp_path / "starts_an_engine.py"
    script.write_text(KILLED)
    command = [sys.executable, str(script), str(folders[TINY][0])]
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=paths) as parent:
        assert parent.stdout is not None
        line = next((line for line in parent.stdout if line.startswith("ready")), "")
        children = psutil.Process(parent.pid).children(recursive=True)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    assert line.startswith("ready")
    cores = [child for child in children if "resource_tracker" not in " ".join(cmdline(child))]
    assert cores
    ended_by = time.monotonic() + 5
    while any(map(alive, cores)) and time.monotonic() < ended_by:
        time.sleep(0.05)
    left = [child for child in cores if alive(child)]
    for child in left:
        child.kill()
    assert left == []


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
