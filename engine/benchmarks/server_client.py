"""A timed client of an MT server: words come first as tail, are committed two seconds later, sentences are finals.

Pacing and figures are those of the smoke test published with the protocol: 2.4 words a second, the client waits for
each answer, the stream clock runs `speed` times as fast as the wall.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import connect

WORDS_PER_S = 2.4
COMMIT_LAG_S = 2.0
STEP_S = 0.4
POLL_S = 0.05
ANSWER_S = 600.0
FAST_PATH = "alignatt:commit_fast_path"

SENTENCES = (
    "Every spring the river carries a little more sand into the old harbour.",
    "The fishermen have known this for longer than the engineers.",
    "A new wall would keep the sand away for twenty or thirty years.",
    "Nobody in the town can say who is going to pay for it.",
    "The council will meet again next week to hear both sides.",
    "Until then the boats leave and return with the tide.",
)


@dataclass(slots=True)
class Talk:
    """What one session did. `events` has one record per answer, `retractions` counts broken promises of the wire."""

    events: list[dict[str, Any]] = field(default_factory=list)
    retractions: int = 0
    errors: list[str] = field(default_factory=list)
    finals: list[str] = field(default_factory=list)
    wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Script:
    """The words of a talk with their end times on the stream clock, and where its sentences end."""

    words: tuple[str, ...]
    ends_s: tuple[float, ...]
    sentence_ends: tuple[int, ...]

    @classmethod
    def of(cls, sentences: tuple[str, ...], pause_s: float) -> Script:
        """Sentences at the published pace, with a pause behind each."""
        words: list[str] = []
        ends: list[float] = []
        borders: list[int] = []
        now_s = 0.0
        for sentence in sentences:
            for word in sentence.split():
                now_s += 1 / WORDS_PER_S
                words.append(word)
                ends.append(now_s)
            borders.append(len(words))
            now_s += pause_s
        return cls(tuple(words), tuple(ends), tuple(borders))

    def said(self, stream_s: float) -> int:
        """How many words have ended by then."""
        return sum(end <= stream_s for end in self.ends_s)


async def talk(url: str, init: dict[str, Any], script: Script, speed: float, tail_over_borders: bool) -> Talk:
    """Hold one session. With `tail_over_borders` the tail runs on into the next sentence, as in the published test."""
    result = Talk()
    began = time.perf_counter()
    async with connect(url, compression=None, ping_timeout=None, open_timeout=60, max_queue=64) as socket:
        await socket.send(json.dumps({"type": "init", "protocol_version": 1, **init}))
        answer = json.loads(await socket.recv())
        if answer["type"] != "init_ok":
            result.errors.append(f"{answer.get('code')}: {answer.get('message')}")
            return result
        await _Speaker(socket, script, speed, tail_over_borders, result).run()
    result.wall_s = time.perf_counter() - began
    return result


class _Speaker:
    def __init__(self, socket: Any, script: Script, speed: float, over_borders: bool, result: Talk) -> None:
        self._socket, self._script, self._speed, self._over = socket, script, speed, over_borders
        self._result = result
        self._seq = self._sentence = self._start = 0
        self._shown = ""

    async def run(self) -> None:
        script, began, last = self._script, time.perf_counter(), (-1, -1)
        while self._sentence < len(script.sentence_ends):
            stream_s = (time.perf_counter() - began) * self._speed
            border = script.sentence_ends[self._sentence]
            committed = min(script.said(stream_s - COMMIT_LAG_S), border)
            final = committed == border
            tail = max(committed, script.said(stream_s) if self._over else min(script.said(stream_s), border))
            now = (committed, -1 if final else tail)
            if now == last or tail <= self._start:
                await asyncio.sleep(POLL_S / self._speed)
                continue
            advanced, last = committed > last[0], now
            await self._update(committed, committed if final else tail, stream_s, final, advanced)
            if final:
                self._sentence, self._start, self._shown = self._sentence + 1, border, ""
            await asyncio.sleep(STEP_S / self._speed)

    async def _update(self, committed: int, tail: int, stream_s: float, final: bool, advanced: bool) -> None:
        script = self._script
        self._seq += 1
        update = {
            "type": "update",
            "seq": self._seq,
            "utterance_id": self._sentence,
            "words": [
                [script.words[at], 1000 * script.ends_s[at] - 300, 1000 * script.ends_s[at]]
                for at in range(self._start, committed)
            ],
            "tail": {"words": [[script.words[at], None, None] for at in range(committed, tail)]},
            "clock_ms": 1000 * stream_s,
            "is_final": final,
        }
        sent = time.perf_counter()
        await self._socket.send(json.dumps(update))
        answer = await self._answer()
        if answer is None:
            return
        rtt_ms = 1000 * (time.perf_counter() - sent)
        self._result.events.append(
            {
                "stream_s": round(stream_s, 2),
                "committed_words": committed - self._start,
                "tail_words": tail - committed,
                "final": bool(answer.get("final")),
                "stop_reason": answer.get("stop_reason"),
                "rtt_ms": round(rtt_ms, 3),
                "queued_ms": answer.get("queued_ms"),
                "server_ms": answer.get("server_ms"),
                "server_cpu_ms": answer.get("server_cpu_ms"),
                "engine_calls": answer.get("engine_calls"),
                "committed_text": answer.get("committed_text"),
                "released": bool(answer.get("committed_delta")),
                "commit_advanced": advanced,
            }
        )
        if answer.get("final"):
            self._result.finals.append(str(answer.get("committed_text")))

    async def _answer(self) -> dict[str, Any] | None:
        """The answer to the last update; every one on the way is checked."""
        while True:
            message: dict[str, Any] = json.loads(await asyncio.wait_for(self._socket.recv(), ANSWER_S))
            if message["type"] == "error":
                self._result.errors.append(f"{message.get('code')}: {message.get('message')}")
                return None
            text = str(message.get("committed_text") or "")
            if not text.startswith(self._shown) or self._shown + str(message.get("committed_delta")) != text:
                self._result.retractions += 1
            self._shown = text
            if message["seq"] >= self._seq:
                return message
