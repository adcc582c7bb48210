"""The server under test, in a process of its own: a preset's translator, or an architecture with random weights."""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from engine.alignatt.policy import Policy
from engine.presets import load_preset
from engine.server.server import MtServer, ServerConfig, Service, settle
from engine.server.translation import MAX_UTTERANCE_WORDS, Terms

START_S = 900.0


class NotStarted(Exception):
    """The server did not start; the message says why."""


_TEMPLATE = "{% for m in messages %}<turn>{{ m['role'] }}\n{{ m['content'] }}</turn>\n{% endfor %}<turn>assistant\n"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is served. `architecture`: one of `engine.benchmarks.architectures`, on vLLM; empty: the preset.

    `one_process`: that vLLM's engine in the server's process.
    """

    preset: str
    pair: tuple[str, str]
    architecture: str = ""
    device: str = "cuda"
    sessions: int = 32
    workers: int = 0
    overrides: tuple[str, ...] = ()
    one_process: bool = False


@contextmanager
def running(wanted: Wanted) -> Iterator[tuple[str, int]]:
    """Start the server; its address and process id. Raises `NotStarted`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(wanted, theirs), name="MT server")
    process.start()
    theirs.close()
    try:
        try:
            answer = ours.recv() if ours.poll(START_S) else "it is not ready after 15 minutes"
        except EOFError:
            answer = f"its process ended with status {process.exitcode}"
        if not isinstance(answer, int):
            raise NotStarted(f"The server did not start: {answer}")
        yield f"ws://127.0.0.1:{answer}", process.pid or 0
    finally:
        ours.close()  # the sign to stop
        process.join(60)
        if process.is_alive():
            process.kill()
            process.join()


def _serve(wanted: Wanted, pipe: Connection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            service = _random_service(wanted, Path(folder)) if wanted.architecture else _preset_service(wanted)
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent says it
            pipe.send(f"{type(error).__name__}: {error}")
            return
        settle()
        try:
            asyncio.run(_until_closed(service, wanted, pipe))
        finally:
            service.translator.close()


async def _until_closed(service: Service, wanted: Wanted, pipe: Connection) -> None:
    workers = _drafts_at_once(wanted)
    server = MtServer(service, ServerConfig(port=0, max_sessions=wanted.sessions + 8, workers=workers, ping_s=600.0))
    pipe.send(await server.start())
    closed = asyncio.Event()
    asyncio.get_running_loop().add_reader(pipe.fileno(), closed.set)
    await closed.wait()
    asyncio.get_running_loop().remove_reader(pipe.fileno())
    await server.stop()


def _drafts_at_once(wanted: Wanted) -> int:
    if wanted.architecture:
        return wanted.workers or wanted.sessions
    from engine.server.command import drafts_at_once, parse_overrides

    return drafts_at_once(wanted.workers, load_preset(wanted.preset, parse_overrides(wanted.overrides)))


def _preset_service(wanted: Wanted) -> Service:
    from engine.server.command import load_service  # of a preset's libraries random weights need none

    return load_service(
        argparse.Namespace(
            preset=wanted.preset,
            pairs="-".join(wanted.pair),
            overrides=list(wanted.overrides),
            max_utterance_words=MAX_UTTERANCE_WORDS,
            workers=_drafts_at_once(wanted),
        )
    )


def _random_service(wanted: Wanted, folder: Path) -> Service:
    """vLLM with seeded random weights; text goes through a small vocabulary of its own, so what comes out is noise."""
    from engine.benchmarks.mt_subject import subject
    from engine.mt.vllm import VllmTranslator

    chosen = subject(wanted.architecture, folder, wanted.device, "bfloat16")
    write_vocabulary(chosen.folder, int(chosen.config().get_text_config().vocab_size))
    settings = chosen.settings()
    translator = VllmTranslator(
        chosen.folder,
        "chat",
        chosen.heads,
        "predicting",
        cache=folder,
        n_ctx=2048,
        sessions=wanted.sessions,
        dtype=chosen.dtype,
        mt_vllm_enforce_eager=wanted.device == "cpu",  # compiling takes minutes there
        kv_cache_gib=settings.kv_cache_gib,
        own_process=not wanted.one_process,
        vllm=settings.vllm,
    )
    terms = Terms(Policy(), max_history=2)
    return Service(translator, "random", wanted.architecture, (wanted.pair,), terms)


def write_vocabulary(folder: Path, size: int) -> None:
    """A tokeniser of `size` tokens: bytes, pieces of English and German, and made-up words up to the size."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    from engine.benchmarks.mt_cases import LONG, MEDIUM, SHORT

    special = {"pad_token": "<pad>", "eos_token": "<eos>", "bos_token": "<bos>"}
    tokeniser = Tokenizer(models.BPE())
    tokeniser.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=min(size, 3000),
        special_tokens=list(special.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text for pair in (*SHORT, *MEDIUM, *LONG) for text in pair]
    tokeniser.train_from_iterator(texts, trainer)
    model: dict[str, Any] = json.loads(tokeniser.to_str())
    vocabulary = model["model"]["vocab"]
    vocabulary |= {f"Ġw{token}": token for token in range(len(vocabulary), size)}
    tokeniser = Tokenizer.from_str(json.dumps(model))
    tokeniser.decoder = decoders.ByteLevel()
    tokeniser.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "chat_template": _TEMPLATE, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
