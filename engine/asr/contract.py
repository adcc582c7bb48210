"""What a recogniser takes and gives. All times are seconds on the session clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 16_000


@dataclass(frozen=True, slots=True)
class Word:
    """One recognised word with its attached punctuation, no surrounding spaces."""

    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Utterance:
    """The state of one utterance: `committed` words never change any more, `tail` is the current guess behind them.

    A final utterance has an empty tail. Utterance ids count from 0 in the order of speech.
    """

    utterance_id: int
    committed: tuple[Word, ...]
    tail: tuple[Word, ...] = ()
    final: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """What changed since the last call: closed utterances in order, then at most one open one.

    `clock_s` is the end of the audio that has been taken into account.
    """

    utterances: tuple[Utterance, ...]
    clock_s: float


class Recogniser(Protocol):
    """Streaming recognition of one speaker. Audio is float32 mono at 16 kHz.

    `coalesce`: take a push of much audio in one step, so as to catch up, instead of step by step as if it came live.
    """

    coalesce: bool

    def push(self, audio_chunk: NDArray[np.float32], start_s: float) -> Transcript:
        """Take audio (shape [samples]) that starts at `start_s`; a jump in time is silence."""
        ...

    def pause(self) -> Transcript:
        """The speaker has paused, and the pause was pushed: what is settled by it may be committed now."""
        ...

    def finish(self) -> Transcript:
        """No more audio for the open utterance: commit its tail and close it."""
        ...

    def reset(self) -> None:
        """Forget everything; utterance ids start again at 0."""
        ...

    def close(self) -> None:
        """End what runs and free what belongs to this recogniser alone; from any thread, more than once."""
        ...


class WindowDecoder(Protocol):
    """A speech model without a stream: one window of audio in, words out. `asr.streaming` makes a recogniser of it."""

    def decode(self, audio: NDArray[np.float32], committed: Sequence[Word]) -> list[Word]:
        """Words of the window (shape [samples]), times relative to its start.

        `committed` are the words at the beginning of the window that will not change any more, times relative to its
        start too: a model that can continue a text goes on behind them, and returns them in front of the new ones.
        """
        ...

    def close(self) -> None:
        """End a decode that runs, and free what belongs to this decoder alone; from any thread, more than once."""
        ...
