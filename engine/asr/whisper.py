"""Whisper as a window decoder, by faster-whisper on CTranslate2.

One greedy pass over the window, at temperature 0 and without earlier text as a prompt, which would invite loops. The
encoder is given the window between two short silences instead of the full 30 s that Whisper was trained with, which
would be most of its cost. Two things make up for it: silence in front, without which the first word is often missed,
and `without_squeezed`, for a decoder that hears no end of the audio says its words again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel
from faster_whisper.tokenizer import Tokenizer
from faster_whisper.transcribe import get_suppressed_tokens, merge_punctuations
from numpy.typing import NDArray

from engine.alignatt.units import separator
from engine.asr.agreement import normalise
from engine.asr.contract import SAMPLE_RATE, Word
from engine.asr.guards import without_loops

FRAMES_PER_S = 100  # of the spectrogram
HOP = SAMPLE_RATE // FRAMES_PER_S
# Silence in front of the window and behind it, and the shortest that the encoder is given, all in seconds.
LEAD_S = 0.5
SILENCE_S = 2.0
SHORTEST_S = 6.0
LONGEST_S = 30.0
TOKENS_PER_S = 8  # more than anybody speaks; bounds what a loop can cost
TOKENS_MOST = 440

# Whisper's own measures of text that is not in the audio (Radford et al. 2022, section 4.5; there 0.6, but in a short
# window noise is given 0.56 to 0.9 and speech up to 0.5).
NO_SPEECH = 0.5
POOR_LOGPROB = -1.0
# What it writes over music and breath, learnt from subtitles of videos.
HALLUCINATED = frozenset(
    [
        "thankyou",
        "thanksforwatching",
        "thankyouforwatching",
        "pleasesubscribe",
        "you",
        "bye",
        "subtitlesbytheamaraorgcommunity",
    ]
)
# So many words in a row of less than this length are not in the audio: the alignment found no place for them.
SQUEEZED_WORDS = 3
SQUEEZED_S = 0.025

_OPENING = "\"'“¿([{-"
_CLOSING = "\"'.。,，!！?？:：”)]}、…"


class WhisperDecoder:
    """`WindowDecoder` over a CTranslate2 folder. Sessions may share one: they decode one after the other.

    `language`: the language spoken; models that are not `multilingual` ignore it. Raises `RuntimeError`
    (CTranslate2's own) for a folder that holds no such model.
    """

    def __init__(self, folder: Path, language: str = "en", threads: int = 1) -> None:
        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=threads, num_workers=1)
        self.multilingual = bool(self._model.model.is_multilingual)
        self._tokens = Tokenizer(self._model.hf_tokenizer, self.multilingual, task="transcribe", language=language)
        self._spaced = separator(language) == " "
        self._prompt = [*self._tokens.sot_sequence, self._tokens.no_timestamps]
        self._suppressed = list(get_suppressed_tokens(self._tokens, [-1]))
        self._lock = threading.Lock()

    def decode(self, audio: NDArray[np.float32], committed: Sequence[Word]) -> list[Word]:
        """See `WindowDecoder.decode`; at most 29.5 s. `committed` is not used: a prompt invites loops."""
        with self._lock:
            return self._decode(audio)

    def close(self) -> None:
        """See `WindowDecoder.close`. Nothing here is of one session alone."""

    def _decode(self, audio: NDArray[np.float32]) -> list[Word]:
        heard = np.concatenate((np.zeros(round(LEAD_S * SAMPLE_RATE), np.float32), audio))
        features = self._model.feature_extractor(heard, padding=HOP)
        frames = min(features.shape[-1], len(heard) // HOP)
        encoded = self._model.encode(_padded(features[:, :frames]))
        seconds = frames / FRAMES_PER_S
        result = self._model.model.generate(
            encoded,
            [self._prompt],
            beam_size=1,
            max_length=min(TOKENS_MOST, len(self._prompt) + int(TOKENS_PER_S * seconds) + TOKENS_PER_S),
            return_scores=True,
            return_no_speech_prob=True,
            suppress_blank=True,
            suppress_tokens=self._suppressed,
        )[0]
        text_tokens = [token for token in result.sequences_ids[0] if token < self._tokens.eot]
        if not text_tokens or (result.no_speech_prob > NO_SPEECH and result.scores[0] < POOR_LOGPROB):
            return []
        said = self._times(text_tokens, encoded, frames)
        words = without_squeezed(without_loops(said))
        # a loop is sure of itself, so over noise its log-probability says nothing
        if len(words) < len(said) and result.no_speech_prob > NO_SPEECH:
            return []
        spoken = "".join(normalise(word.text) for word in words)
        if not any(character.isalnum() for character in spoken):  # a lone full stop is what it makes of hum
            return []
        if result.no_speech_prob > NO_SPEECH and spoken in HALLUCINATED:
            return []
        return words

    def _times(self, text_tokens: list[int], encoded: object, frames: int) -> list[Word]:
        """Words with times from the decoder's cross-attention."""
        (alignment,) = self._model.find_alignment(self._tokens, [text_tokens], encoded, frames) or [[]]
        merge_punctuations(alignment, _OPENING, _CLOSING)
        words: list[Word] = []
        for row in alignment:
            text, start_s, end_s = row["word"], *(max(0.0, float(row[side]) - LEAD_S) for side in ("start", "end"))
            if not text.strip():
                continue
            if words and self._spaced and not text[0].isspace():  # "-disposed" belongs to "ill"
                words[-1] = Word(words[-1].text + text.strip(), words[-1].start_s, end_s)
            else:
                words.append(Word(text.strip(), start_s, end_s))
        return words


def _padded(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """The spectrogram with silence behind it, as long as the encoder wants it (an even number of frames).

    The silence in front holds the lowest value there is.
    """
    frames = features.shape[-1]
    wanted = max(SHORTEST_S, frames / FRAMES_PER_S + SILENCE_S)
    total = min(round(LONGEST_S * FRAMES_PER_S), 2 * round(wanted * FRAMES_PER_S / 2))
    return np.pad(features, ((0, 0), (0, total - frames)), constant_values=float(features.min()))


def without_squeezed(words: Sequence[Word]) -> list[Word]:
    """The words up to where `SQUEEZED_WORDS` in a row have next to no length."""
    short = [word.end_s - word.start_s < SQUEEZED_S for word in words]
    for start in range(len(words) - SQUEEZED_WORDS + 1):
        if all(short[start : start + SQUEEZED_WORDS]):
            return list(words[:start])
    return list(words)
