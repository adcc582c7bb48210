"""A translation session on an MT server: the second level of the contract, over the network.

Stable text outlives the connection: a new one is told what is on screen of the open utterance and what was said before
(`accepted_target_prefix`, `history`). While there is none, partial updates show the text as it stands, and finals wait
for a while before they do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.alignatt import policy as reasons
from engine.alignatt.units import separator
from engine.asr.contract import Word
from engine.files import why
from engine.mt.contract import Cancel, CaptionState, CaptureHealth, TranslationError
from engine.mt.remote_link import Address, Link, Message, Refused, open_session
from engine.mt.wire import MAX_TEXT_CHARS, MAX_WORD_CHARS, MAX_WORDS
from engine.presets import Preset

logger = logging.getLogger("surtitle.mt")

OFFLINE = "remote:offline"
CAPTURE_CHANGED = "capture_changed"
NOTICE = "server_notice"
HISTORY = 8
PATIENCE_S = 15.0  # how long after the loss of the server a final waits for it to come back
ANSWER_S = 60.0
POLL_S = 0.02

OnHealth = Callable[[str, str], None]
Capture = tuple[str, str]  # mode and result of the self-test, as in a session log


class RemoteServer:
    """Stands where a preset's translator would. Raises `TranslationError` when the server cannot be used.

    `model`, `preset`, `head_set_name`, `policy` and, in `health`, the capture mode and `heads_note` are what the server
    says of itself; where it does not, they are "", empty and "remote".
    """

    def __init__(self, preset: Preset, source_lang: str, target_lang: str) -> None:
        wanted = preset.translator
        self._address = Address(wanted.url, _token(wanted.token_file))
        self._init: Message = {"source_lang": source_lang, "target_lang": target_lang}
        if wanted.remote_preset:
            self._init["preset"] = wanted.remote_preset
        self._separators = separator(source_lang), separator(target_lang)
        try:
            socket, answer = open_session(self._address, self._init)
        except Refused as refused:
            raise TranslationError(str(refused)) from refused
        socket.close()
        self.model = str(answer.get("model", ""))
        self.preset = str(answer.get("preset", ""))
        self.head_set_name = str(answer.get("head_set", ""))
        policy = answer.get("policy")
        self.policy: dict[str, Any] = dict(policy) if isinstance(policy, dict) else {}
        self._capture = _capture(answer)
        self.health = CaptureHealth(*self._capture, heads_note=str(answer.get("heads_note", "")))

    def session(self, context: str, on_health: OnHealth, patience_s: float = PATIENCE_S) -> RemoteTranslationSession:
        """A session of its own connection.

        `on_health(state, sentence)`: "remote_offline", then "ok"; "capture_changed" when the server came back with
        another way of reading attention; "server_notice" when it goes on with less than before, such as another policy.
        """
        init = {**self._init, **({"context_text": context[:MAX_TEXT_CHARS]} if context else {})}
        return RemoteTranslationSession(
            self._address, init, self._separators, on_health, patience_s, capture=self._capture
        )

    def close(self) -> None:
        """Nothing is held between sessions."""


@dataclass(slots=True)
class _Open:
    """The open utterance. What the server closed of it by itself is done with; `text` is stable behind that."""

    utterance_id: int
    segment: int = 0
    done_words: int = 0
    done_text: str = ""
    text: str = ""
    covered: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """What has an utterance id of its own on the wire."""
        return self.utterance_id, self.segment


@dataclass(slots=True)
class _Wire:
    """What the server of the present connection has been told: the accepted prefix, then utterances in order."""

    generation: int = -1
    prefix: str = ""
    utterance_id: int = -1
    key: tuple[int, int] | None = None
    finished: bool = True
    clock_ms: int = 0


@dataclass(frozen=True, slots=True)
class _Sent:
    """An update on its way: where in the utterance its words begin, and how many are committed."""

    done_words: int
    done_text: str
    words: int


class RemoteTranslationSession:
    """`TranslationSession` on a server. `update` belongs to one thread; `violations` counts refused answers."""

    def __init__(
        self,
        address: Address,
        init: Message,
        separators: tuple[str, str],
        on_health: OnHealth,
        patience_s: float,
        *,
        capture: Capture,
    ) -> None:
        self._fixed = init
        self._capture = capture
        self._separators = separators
        self._on_health = on_health
        self._patience_s = patience_s
        self._where = address.shown
        self._lock = threading.Lock()  # the link's thread reads `_history` and `_open` for its init
        self._history: list[list[str]] = []
        self._open = _Open(-1)
        self._wire = _Wire()
        self._seq = 0
        self._sent: dict[int, _Sent] = {}
        self.violations = 0
        self._link = Link(address, self._make_init, self._changed)

    def update(
        self,
        utterance_id: int,
        committed: Sequence[Word],
        tail: Sequence[Word],
        clock_s: float,
        final: bool,
        cancel: Cancel,
    ) -> CaptionState:
        """See `TranslationSession.update`. Without a server the text stays as it is (reason `remote:offline`)."""
        if utterance_id != self._open.utterance_id:
            with self._lock:
                self._open = _Open(utterance_id)
        for late in self._link.drain():
            self._take(late, -1)
        while True:
            words = committed[self._open.done_words :]
            if not words and (final or not tail):
                return self._state(committed, final, reasons.EMPTY_SOURCE)
            if not self._ready(final):
                return self._state(committed, final, OFFLINE)
            started = time.perf_counter()
            seq = self._send(words, () if final else tail, clock_s, final)
            answer = self._wait(seq, None if final else cancel)
            if answer is not None:
                return self._state(committed, final, *self._details(answer, started))
            if not final:
                return self._state(committed, final, reasons.SUPERSEDED if cancel() else OFFLINE)

    def close(self) -> None:
        """End the connection."""
        self._link.close()

    # ------------------------------------------------------------ the connection

    def _make_init(self) -> Message:
        """What a new connection is told (in the link's thread)."""
        with self._lock:
            init = {**self._fixed, "history": [list(pair) for pair in self._history]}
            if self._open.text:
                init["accepted_target_prefix"] = self._open.text
            return init

    def _changed(self, reason: str) -> None:
        if reason:
            self._on_health("remote_offline", f"{reason} The text is kept; translation goes on once it is back.")
        else:
            self._on_health("ok", f"The MT server {self._where} is back.")

    def _ready(self, final: bool) -> bool:
        """Have a connection on which the next update is what the server expects. False: there is none to be had."""
        while self._link.wait_up(self._patience_s if final else 0.0):
            wire = self._wire
            generation, init, greeting = self._link.present()
            if wire.generation != generation:
                self._compare_capture(_capture(greeting))
                wire = self._wire = _Wire(generation, init.get("accepted_target_prefix", ""))
                self._sent.clear()
            if wire.key == self._open.key:
                return True
            expected = wire.finished if wire.key is not None else wire.prefix == self._open.text
            if expected:
                wire.key, wire.finished, wire.utterance_id = self._open.key, False, wire.utterance_id + 1
                return True
            self._link.renew()
        return False

    def _compare_capture(self, capture: Capture) -> None:
        """A log holds one way of reading attention; if it changes, that must be said in it."""
        if capture != self._capture:
            self._capture = capture
            mode, self_test = capture
            text = f"The MT server {self._where} now captures attention in mode '{mode}' (self-test: {self_test})."
            self._on_health(CAPTURE_CHANGED, text)

    def _send(self, words: Sequence[Word], tail: Sequence[Word], clock_s: float, final: bool) -> int:
        self._seq += 1
        self._sent[self._seq] = _Sent(self._open.done_words, self._open.done_text, len(words))
        wire_words = _wire_words(words)
        wire = self._wire
        newest_ms = max((end_ms for _, _, end_ms in wire_words), default=0)
        wire.clock_ms = max(wire.clock_ms, round(clock_s * 1000), newest_ms)
        self._link.send(
            {
                "type": "update",
                "seq": self._seq,
                "utterance_id": wire.utterance_id,
                "words": wire_words,
                "tail": {"words": [[text, None, None] for text, _, _ in _wire_words(tail[:MAX_WORDS])]},
                "clock_ms": wire.clock_ms,
                "is_final": final,
            }
        )
        return self._seq

    def _wait(self, seq: int, cancel: Cancel | None) -> Message | None:
        """The answer to an update; None when the connection is lost or the update is overtaken."""
        generation, deadline = self._wire.generation, time.monotonic() + ANSWER_S
        while True:
            here = self._link.wait_mail(generation, POLL_S if cancel else 1.0)
            answers = [answer for message in self._link.drain() if (answer := self._take(message, seq))]
            if answers:
                return answers[-1]
            if not here or (cancel is not None and cancel()):
                return None
            if time.monotonic() > deadline:
                logger.warning("The MT server %s does not answer: connecting again.", self._where)
                self._link.renew()
                return None

    # ------------------------------------------------------------ what the server says

    def _take(self, message: Message, awaited: int) -> Message | None:
        """Take in one message; the answer that was waited for, if it is that. Raises `TranslationError`."""
        if message.get("type") == "error":
            if message.get("seq", awaited) != awaited or awaited < 0:
                return None
            if message.get("code") != "processing_failed":
                self._link.renew()
            raise TranslationError(str(message.get("message") or "The MT server reports an error."))
        seq = message.get("seq")
        if message.get("type") != "translation" or not isinstance(seq, int) or seq not in self._sent:
            return None
        sent = self._sent[seq]
        # answers come in order: what was sent before this one was overtaken
        self._sent = {later: update for later, update in self._sent.items() if later > seq}
        self._apply(message, sent)
        return message if seq == awaited else None

    def _apply(self, answer: Message, sent: _Sent) -> None:
        if notice := answer.get("notice"):
            self._on_health(NOTICE, f"The MT server {self._where} says: {notice}")
        text, state = str(answer.get("committed_text", "")), self._open
        whole = self._join(sent.done_text, text)
        with self._lock:
            if not whole.startswith(self._stable()):
                self.violations += 1
                logger.error("the MT server would replace %r by %r", self._stable(), whole)
                return
            covered = answer.get("covered_source_units")
            state.covered = sent.done_words + covered if isinstance(covered, int) else state.covered
            if not answer.get("final"):
                state.text = text
                return
            self._wire.finished = True
            state.done_words, state.done_text, state.text = sent.done_words + sent.words, whole, ""
            state.segment += 1

    def _details(self, answer: Message, started: float) -> tuple[str, str, dict[str, float], bool]:
        """Reason, held text, stages and whether the model was called, for the state."""
        held = "" if answer.get("final") else str(answer.get("buffer_text", ""))
        if held and self._open.done_text and not self._open.text:
            held = self._separators[1] + held.lstrip()
        stages = {"mt_ms": float(answer.get("server_ms", 0.0)), "rtt_ms": _ms(time.perf_counter() - started)}
        reason = str(answer.get("stop_reason", ""))
        calls = answer.get("engine_calls", int(reason != reasons.COMMIT_FAST_PATH))
        return reason, held, stages, bool(calls)

    def _state(
        self,
        committed: Sequence[Word],
        final: bool,
        reason: str,
        held: str = "",
        stages: dict[str, float] | None = None,
        engine_call: bool = False,
    ) -> CaptionState:
        state, stable = self._open, self._stable()
        if final and stable:
            source = self._separators[0].join(word.text for word in committed)
            with self._lock:
                pair = [source[:MAX_TEXT_CHARS], stable[:MAX_TEXT_CHARS]]
                self._history = [*self._history, pair][-HISTORY:]
        return CaptionState(
            state.utterance_id, stable, held, state.covered or None, final, reason, engine_call, stages or {}
        )

    def _stable(self) -> str:
        return self._join(self._open.done_text, self._open.text)

    def _join(self, done: str, text: str) -> str:
        return done + self._separators[1] + text if done and text else done or text


def _wire_words(words: Sequence[Word]) -> list[tuple[str, int, int]]:
    """Words as the protocol takes them: milliseconds that never go back, text of bounded length."""
    result: list[tuple[str, int, int]] = []
    start_ms = 0
    for word in words:
        start_ms = max(start_ms, round(word.start_s * 1000))
        text = " ".join(word.text.split())[:MAX_WORD_CHARS] or "…"
        result.append((text, start_ms, max(start_ms, round(word.end_s * 1000))))
    return result


def _capture(init_ok: Message) -> Capture:
    """What a server says of its attention rows; one that says nothing has no verified ones."""
    said = init_ok.get("capture")
    mode, self_test = (said.get("mode"), said.get("self_test")) if isinstance(said, dict) else (None, None)
    if isinstance(mode, str) and isinstance(self_test, str):
        return mode, self_test
    return "remote", "not run"


def _token(path: str) -> str:
    if not path:
        return ""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise TranslationError(f"The token of the MT server cannot be read from {path}: {why(error)}.") from error


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 3)
