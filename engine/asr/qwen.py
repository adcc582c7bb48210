"""Qwen3-ASR as a window decoder: the open utterance is decoded again with its committed words as a prefix.

The prefix costs no decoding and cannot come out differently, so an update costs the audio of the window, which is
bounded, and the words behind the committed ones. Word times are the forced aligner's, for the whole window at once:
it knows a word by its neighbours. Committed words keep the times that they were committed with.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.asr import qwen_text
from engine.asr.agreement import normalise
from engine.asr.alignment import joined, spans, units
from engine.asr.contract import SAMPLE_RATE, Word
from engine.asr.guards import without_echo, without_loops, without_repeats
from engine.asr.qwen_models import QwenModels
from engine.asr.speech_engine import RecognitionError
from engine.asr.utterances import OPEN_END_MARKS
from engine.spans import span

logger = logging.getLogger("surtitle.asr")

# More than anybody speaks, in any script; bounds what a loop can cost.
TOKENS_PER_S = 10.0
TOKENS_LEAST = 16


class QwenDecoder:
    """`WindowDecoder` of one session over models that sessions share. For one thread; `close` from any.

    `language`: a code as in `qwen_text.LANGUAGES`, "" to have it found for each utterance. `context`: names and terms
    that may be said. `forced_tokens_per_s`: so many tokens for each second behind the committed words whatever the
    model says, for measurements with random weights. Raises `RecognitionError` for an unknown language.
    """

    def __init__(
        self, models: QwenModels, language: str, context: str = "", *, forced_tokens_per_s: float = 0.0
    ) -> None:
        check_language(language)
        self._models = models
        self._language = qwen_text.LANGUAGES.get(language, "")
        self._context = qwen_text.clean_context(context)
        self._terms = [normalise(word) for word in self._context.split()]
        self._forced = forced_tokens_per_s
        self._found = ""
        self._told = False
        self._closed = threading.Event()

    def decode(self, audio: NDArray[np.float32], committed: Sequence[Word]) -> list[Word]:
        """See `WindowDecoder.decode`; at most 29.5 s. Cancelled by `close`: the committed words alone."""
        so_far = joined([word.text for word in committed]).rstrip(OPEN_END_MARKS)
        language = self._language or (self._found if committed else "")
        so_far = so_far if language else ""
        window_s = len(audio) / SAMPLE_RATE
        seconds = max(0.0, window_s - (committed[-1].end_s if committed else 0.0))
        written = self._models.transcribe(
            audio,
            self._context,
            qwen_text.answer_head(language, so_far),
            self._most(seconds),
            self._closed.is_set,
            exactly=self._forced > 0,
        )
        if written is None:
            return list(committed)
        answer = qwen_text.parse_answer(written, language)
        self._note_language(answer.language)
        return self._words(audio, so_far, answer.text, committed)

    def close(self) -> None:
        """See `WindowDecoder.close`. The models stay: others share them."""
        self._closed.set()

    def _most(self, seconds: float) -> int:
        if self._forced:
            return max(1, round(self._forced * seconds))
        return TOKENS_LEAST + int(TOKENS_PER_S * seconds)

    def _note_language(self, name: str) -> None:
        self._found = name or self._found
        codes = {full.lower(): code for code, full in qwen_text.LANGUAGES.items()}
        if name and codes.get(name.lower()) not in qwen_text.ALIGNED and not self._told:
            self._told = True
            logger.warning("The forced aligner was not trained on %s: times of words may be far off.", name)

    def _words(self, audio: NDArray[np.float32], so_far: str, written: str, committed: Sequence[Word]) -> list[Word]:
        """The committed words, the last of them as it is written now, and the new ones with their times.

        `written` goes on behind `so_far`; where that is empty, it is the text of the whole window.
        """
        found = units(so_far + without_repeats(written))
        kept = list(committed) if so_far else []  # without a prefix the model wrote them again
        first = sum(unit.start < len(so_far) for unit in found)
        if kept and first and normalise(found[first - 1].text) == normalise(kept[-1].text):
            kept[-1] = replace(kept[-1], text=found[first - 1].text)
        if first == len(found):
            return kept
        with span("alignment"):
            classes = self._models.align(audio, [unit.spoken for unit in found], self._closed.is_set)
        if classes is None:
            return list(committed)
        times = spans(classes, self._models.class_s, len(audio) / SAMPLE_RATE)
        fresh = [
            Word(unit.text, start_s, end_s)
            for unit, (start_s, end_s) in zip(found[first:], times[first:], strict=False)
        ]
        fresh = without_echo(fresh, self._terms)
        whole = without_loops([*kept, *fresh])
        return whole if len(whole) >= len(kept) else kept


def check_language(language: str) -> None:
    """Raises `RecognitionError` for a code that the recogniser or the aligner does not know; "" is to be detected."""
    if language and language not in qwen_text.LANGUAGES:
        raise RecognitionError(
            f"Qwen3-ASR does not know the language '{language}'; it knows {', '.join(qwen_text.LANGUAGES)}."
        )
    if language and language not in qwen_text.ALIGNED:
        name = qwen_text.LANGUAGES[language]
        raise RecognitionError(
            f"The forced aligner has no times for {name}; it knows {', '.join(sorted(qwen_text.ALIGNED))}."
        )
