"""Words for the recogniser's tests, and decoders that need no model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from engine.asr.contract import SAMPLE_RATE, Transcript, Utterance, Word
from engine.asr.streaming import StreamingRecogniser

Audio = NDArray[np.float32]


def words(text: str, start_s: float = 0.0, each_s: float = 0.5) -> list[Word]:
    """Words of equal length, one behind the other; "_" is a pause of that length."""
    return [
        Word(word, start_s + at * each_s, start_s + (at + 1) * each_s)
        for at, word in enumerate(text.split())
        if word != "_"
    ]


def text(said: Iterable[Word]) -> str:
    return " ".join(word.text for word in said)


class ScriptedDecoder:
    """`WindowDecoder` that answers one hypothesis after the other; the last one again when none is left."""

    def __init__(self, *hypotheses: str | Sequence[Word]) -> None:
        self._hypotheses = [words(one) if isinstance(one, str) else list(one) for one in hypotheses]
        self.windows: list[int] = []
        self.committed: list[list[Word]] = []
        self.closed = False

    def close(self) -> None:
        self.closed = True

    def decode(self, audio: Audio, committed: Sequence[Word]) -> list[Word]:
        self.windows.append(len(audio))
        self.committed.append(list(committed))
        return self._hypotheses[min(len(self.windows), len(self._hypotheses)) - 1]


class Speaker:
    """Audio that carries its own words: sample values number the words, and the decoder reads them.

    A word whose piece of the window is shorter than half of it is not heard. `wobble(call, number)` moves times.
    """

    def __init__(self, said: Sequence[str], word_s: float = 0.3, wobble: Callable[[int, int], float] | None = None):
        self._said, self._word, self._wobble = said, round(word_s * SAMPLE_RATE), wobble or (lambda call, number: 0.0)
        self.longest = 0
        self.calls = 0

    def audio(self, first: int, count: int) -> Audio:
        """The sound of some words; number n sounds as n + 1, silence as 0."""
        return np.repeat(np.arange(first + 1, first + count + 1, dtype=np.float32), self._word)

    def close(self) -> None:
        pass

    def decode(self, audio: Audio, committed: Sequence[Word]) -> list[Word]:
        self.calls += 1
        self.longest = max(self.longest, len(audio))
        edges = [0, *(np.flatnonzero(np.diff(audio)) + 1).tolist(), len(audio)]
        heard = []
        for start, end in pairwise(edges):
            number = int(audio[start]) - 1 if end > start else -1
            if number >= 0 and end - start >= self._word / 2:
                shift = self._wobble(self.calls, number)
                said = self._said[number % len(self._said)]
                heard.append(Word(said, max(0.0, start / SAMPLE_RATE + shift), max(0.0, end / SAMPLE_RATE + shift)))
        return heard


def recogniser(decoder: object, **values: object) -> StreamingRecogniser:
    """A streaming recogniser with a decode each second."""
    chosen = {"chunk_ms": 1000, "hold_back_ms": 300, "silence_ms": 700, "max_tail_s": 12.0, **values}
    return StreamingRecogniser(decoder, **chosen)  # type: ignore[arg-type]


def sound(seconds: float) -> Audio:
    """Audio for a decoder that does not listen."""
    return np.full(round(seconds * SAMPLE_RATE), 0.1, np.float32)


class Reader:
    """Follows transcripts as a session does, and holds them to the contract."""

    def __init__(self) -> None:
        self.closed: list[Utterance] = []
        self.open: Utterance | None = None
        self.last_s = 0.0
        self.clock_s = 0.0

    def take(self, transcript: Transcript) -> Transcript:
        assert transcript.clock_s >= self.clock_s
        self.clock_s = transcript.clock_s
        for utterance in transcript.utterances:
            assert utterance.utterance_id == len(self.closed)
            if self.open is not None:
                assert utterance.committed[: len(self.open.committed)] == self.open.committed
            self._check_times(utterance, transcript.clock_s)
            if utterance.final:
                assert not utterance.tail
                self.closed.append(utterance)
                self.open = None
            else:
                assert utterance is transcript.utterances[-1]
                self.open = utterance
        return transcript

    def _check_times(self, utterance: Utterance, clock_s: float) -> None:
        before = self.closed[-1].committed[-1].end_s if self.closed and self.closed[-1].committed else 0.0
        for word in (*utterance.committed, *utterance.tail):
            assert before <= word.start_s <= word.end_s <= clock_s
            before = word.end_s

    @property
    def said(self) -> list[str]:
        """The text of every closed utterance."""
        return [text(utterance.committed) for utterance in self.closed]
