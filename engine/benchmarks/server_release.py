"""Release on commit alone, without a model: what it takes beside threads that want the interpreter as well.

Drafts and an engine in the server's own process are such threads. A release that takes longer than the interpreter's
switch interval is interrupted by them, each time for at least that long; a shorter one mostly is not.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from engine.alignatt.draft import Draft
from engine.alignatt.policy import Policy
from engine.asr.contract import Utterance, Word
from engine.mt.contract import Cancel, CaptureHealth, Source
from engine.scheduler import Update
from engine.server.protocol import Answer, Init
from engine.server.server import SWITCH_INTERVAL_S
from engine.server.translation import Terms, WireTranslation

TOKENS = 16
WORDS = 14
BURST_S = 0.003
REST_S = 0.0002
BETWEEN_S = 0.004


def releases(threads: int, utterances: int = 40) -> list[Answer]:
    """Answers without a draft, each of which released a word, beside so many busy threads."""
    with _quick_turns(), _busy(threads):
        return [answer for at in range(utterances) for answer in _utterance(at)]


def _utterance(number: int) -> Iterator[Answer]:
    """One draft, then its words are committed one by one."""
    words = tuple(Word(f"word{at}", at * 0.4, at * 0.4 + 0.3) for at in range(WORDS))
    init = Init(type="init", protocol_version=1, source_lang="en", target_lang="de")
    translation = WireTranslation(_Drafts(), "release", init, Terms(Policy()))
    for committed in range(2, WORDS - 2):
        time.sleep(BETWEEN_S)
        utterance = Utterance(number, words[:committed], words[committed:], False)
        answer = translation.advance(Update(utterance, 100.0, time.monotonic(), committed), lambda: False)
        if isinstance(answer, Answer) and not answer.engine_calls and answer.committed_delta:
            yield answer


class _Drafts:
    """A translator whose token n looks at source unit n."""

    supports_shared_kv = False

    def __init__(self) -> None:
        self.health = CaptureHealth()

    def draft(
        self, session_id: str, source: Source, prefill_ids: Sequence[int], max_new_tokens: int, cancel: Cancel
    ) -> Draft:
        rows = np.zeros((TOKENS, len(source.units)), np.float32)
        rows[np.arange(TOKENS), np.minimum(np.arange(TOKENS), len(source.units) - 1)] = 0.5
        rest = np.full(TOKENS, 0.25, np.float32)
        pieces = tuple(f" wort{at}".encode() for at in range(TOKENS))
        missing = np.zeros(TOKENS, np.bool_)
        return Draft(tuple(prefill_ids), tuple(range(TOKENS)), pieces, rows, rest, rest, missing, "length")

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def encode_target(self, text: str) -> list[int]:
        return []

    def close_session(self, session_id: str) -> None:
        pass

    def close(self) -> None:
        pass


@contextmanager
def _quick_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    done = threading.Event()

    def work() -> None:
        held: dict[int, tuple[int, str]] = {}
        while not done.wait(REST_S):
            until = time.perf_counter() + BURST_S
            while time.perf_counter() < until:
                held.update((at, (at, str(at))) for at in range(50))

    threads = [threading.Thread(target=work, name="busy", daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        done.set()
        for thread in threads:
            thread.join()
