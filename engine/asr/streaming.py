"""A recogniser for live speech out of a model that only knows windows.

The open utterance is one window of audio, decoded again whenever `chunk_ms` of new audio is there. What two decodes
agree on is committed (`agreement`); the window is cut behind every closed utterance (`utterances`), so neither its
length nor the cost of one decode grows with the time somebody talks.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engine.asr.agreement import LocalAgreement, normalise
from engine.asr.contract import SAMPLE_RATE, Transcript, Utterance, WindowDecoder, Word
from engine.asr.utterances import OPEN_END_MARKS, best_pause, ends_sentence
from engine.spans import span

logger = logging.getLogger("surtitle.asr")

# No model here takes more than this in one window (whisper's positions end at 30 s).
LONGEST_WINDOW_S = 29.5
# Less audio than this holds no word, and a spectrogram needs a few frames.
SHORTEST_WINDOW_S = 0.1
# Silence behind a sentence mark that closes the utterance although no word follows yet.
SENTENCE_PAUSE_S = 0.6
# From this share of the cap on, an utterance is closed at a pause too: one of this length (a comma counts as some
# silence) at first, a shorter one the nearer the cap is.
SOFT_CAP = 0.6
SOFT_PAUSE_S = 0.6
# How far around the middle of a gap the quietest place is sought for the cut, and how finely.
CUT_REACH_S = 0.15
CUT_FRAME_S = 0.02
# A word at the very beginning of a window that repeats the last closed one is its echo: the cut left a piece of it.
ECHO_S = 0.3
# A word that ends this close to the end of the audio is cut off by it more often than not.
CUT_WORD_S = 0.1

_EMPTY: NDArray[np.float32] = np.zeros(0, np.float32)


@dataclass(slots=True)
class Dropped:
    """What never reached the model since `reset`: samples that were no numbers, and windows without any sound."""

    samples: int = 0
    windows: int = 0


class StreamingRecogniser:
    """`contract.Recogniser` over a `WindowDecoder`. For one speaker and one thread.

    Audio is decoded at fixed distances of `chunk_ms` however it is pushed, so a file read at once gives the same words
    as a microphone. With `coalesce` true a push of more audio than one chunk is decoded once, at its end: an engine
    that has fallen behind catches up that way.

    An utterance that was shown and turns out to hold no words is closed with no committed words.
    """

    def __init__(
        self,
        decoder: WindowDecoder,
        *,
        chunk_ms: int,
        hold_back_ms: int,
        silence_ms: int,
        max_tail_s: float,
        coalesce: bool = False,
    ) -> None:
        self.coalesce = coalesce
        self._decoder = decoder
        self._chunk = chunk_ms * SAMPLE_RATE // 1000
        self._hold_back_s = hold_back_ms / 1000
        self._silence = silence_ms * SAMPLE_RATE // 1000
        self._max_tail_s = max_tail_s
        self.dropped = Dropped()
        self.reset()

    def reset(self) -> None:
        """Forget everything; utterance ids start again at 0."""
        self._next_id = 0
        self._tell_dropped()
        # what happened and was not returned yet: a decode that fails must not take with it what was closed before
        self._changed: list[Utterance] = []
        self._clear(0)

    def push(self, audio_chunk: NDArray[np.float32], start_s: float) -> Transcript:
        """Take audio (shape [samples]) that starts at `start_s`.

        A jump ahead is silence, and one of `silence_ms` or more closes the open utterance. Audio that starts before
        the end of what was pushed is put behind it.
        """
        at = round(start_s * SAMPLE_RATE)
        if not self._audio.size:
            self._clear(max(at, self._end))
        elif at - self._end >= self._silence:
            self._changed += self._finish()
            self._clear(at)
        elif at > self._end:
            self._feed(np.zeros(at - self._end, np.float32))
        self._feed(self._numbers(np.asarray(audio_chunk, np.float32)))
        return self._report()

    def pause(self) -> Transcript:
        """The speaker has paused: decode what is new and commit every word that the hold-back lets go.

        Silence behind a word settles it, so it need not wait for a second decode; the utterance stays open.
        """
        if self._decoded < self._audio.size:
            self._decode()
            settled_s = self._clock_s - self._hold_back_s
            self._agreement.commit(sum(word.end_s <= settled_s for word in self._agreement.tail))
            self._changed += self._settle()
        return self._report()

    def finish(self) -> Transcript:
        """Decode what was not decoded yet, commit everything and close the open utterance."""
        self._changed += self._finish()
        self._clear(self._end)
        return self._report()

    def close(self) -> None:
        """End a decode that runs in another thread."""
        self._tell_dropped()
        self._decoder.close()

    def _tell_dropped(self) -> None:
        dropped, self.dropped = self.dropped, Dropped()
        if dropped.samples or dropped.windows:
            logger.warning("%d samples were no numbers, %d windows held no sound.", dropped.samples, dropped.windows)

    @property
    def window_s(self) -> tuple[float, float]:
        """The window of the open utterance: its start and the end of what of it was decoded, on the session clock."""
        return self._start / SAMPLE_RATE, self._clock_s

    # ------------------------------------------------------------ the window

    @property
    def _end(self) -> int:
        """The sample on the session clock behind the last one pushed."""
        return self._start + self._audio.size

    @property
    def _clock_s(self) -> float:
        """The end of the audio that was decoded."""
        return (self._start + self._decoded) / SAMPLE_RATE

    def _clear(self, start: int) -> None:
        self._audio = _EMPTY
        self._start = start
        self._decoded = 0
        self._agreement = LocalAgreement(self._hold_back_s)
        self._closed: Word | None = None
        # whether the open utterance was reported with words in it, and how many of them as committed
        self._shown, self._reported = False, 0

    def _report(self) -> Transcript:
        """Every utterance closed since the last report, and the open one only as it was last."""
        changed, self._changed = self._changed, []
        closed = [utterance for utterance in changed if utterance.final]
        still_open = [utterance for utterance in changed[-1:] if not utterance.final]
        return Transcript((*closed, *still_open), self._clock_s)

    def _feed(self, samples: NDArray[np.float32]) -> None:
        """Append audio and decode at every chunk boundary in it."""
        while samples.size:
            room = round(LONGEST_WINDOW_S * SAMPLE_RATE) - self._audio.size
            if room <= 0:
                self._changed += self._give_up()
                continue
            undecoded = self._audio.size - self._decoded
            step = min(self._step(samples.size, undecoded), room)
            self._audio = np.concatenate((self._audio, samples[:step]))
            samples = samples[step:]
            if undecoded + step >= self._chunk or step == room:
                self._changed += self._advance()

    def _numbers(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """The samples with silence for what is not finite."""
        broken = ~np.isfinite(samples)
        count = int(np.count_nonzero(broken))
        self.dropped.samples += count
        return np.where(broken, np.float32(0), samples) if count else samples

    def _step(self, available: int, undecoded: int) -> int:
        """How many samples to take before the next decode is due."""
        if not self.coalesce:
            return min(available, self._chunk - undecoded)
        until_cap = round(self._max_tail_s * SAMPLE_RATE) - self._audio.size
        return min(available, max(self._chunk - undecoded, until_cap))

    # ------------------------------------------------------------ decoding

    def _advance(self) -> list[Utterance]:
        """One decode of the window, and what follows from it."""
        self._decode()
        return self._settle()

    def _settle(self) -> list[Utterance]:
        """Close what has ended or become too long; then the open utterance as it is."""
        closed = self._close_sentences(final=False)
        closed += self._close_overlong()
        return closed + self._open_state()

    def _decode(self) -> None:
        self._decoded = self._audio.size
        if self._audio.size < SHORTEST_WINDOW_S * SAMPLE_RATE:
            return
        if not self._audio.any():
            self.dropped.windows += 1
            return
        offset_s = self._start / SAMPLE_RATE
        committed = [
            Word(word.text, max(0.0, word.start_s - offset_s), max(0.0, word.end_s - offset_s))
            for word in self._agreement.committed
        ]
        with span("recogniser", self._clock_s):
            decoded = self._decoder.decode(self._audio, committed)
        words = [
            Word(word.text.strip(), offset_s + word.start_s, offset_s + word.end_s)
            for word in decoded
            if word.text.strip()
        ]
        self._agreement.insert(self._without_echo(words), self._clock_s)

    def _without_echo(self, words: list[Word]) -> list[Word]:
        """Drop what belongs to the utterance closed before: words that end before its end, and its last word again."""
        closed = self._closed
        while closed and words:
            first = words[0]
            repeats = normalise(first.text) == normalise(closed.text)
            expected = self._agreement.committed or self._agreement.tail
            known = bool(expected) and normalise(expected[0].text) == normalise(first.text)
            echo = repeats and not known and first.start_s < self._start / SAMPLE_RATE + ECHO_S
            if not echo and (first.start_s + first.end_s) / 2 >= closed.end_s:
                break
            words = words[1:]
        return words

    def _finish(self) -> list[Utterance]:
        if self._decoded < self._audio.size:
            self._decode()
        self._agreement.commit(len(self._agreement.tail))
        closed = self._close_sentences(final=True)
        if self._agreement.committed or self._shown:
            closed.append(self._close(len(self._agreement.committed)))
        return closed

    # ------------------------------------------------------------ closing

    def _close_sentences(self, final: bool) -> list[Utterance]:
        """Close every utterance whose sentence has ended and is committed."""
        closed: list[Utterance] = []
        while (count := self._sentence_end(final)) > 0:
            closed.append(self._close(count))
        return closed

    def _sentence_end(self, final: bool) -> int:
        """Committed words up to the first sentence end behind which a word or a pause was heard; 0 without one.

        Words that were reported as committed stay in their utterance, so ends before the last of them are over.
        """
        committed, words = self._agreement.committed, self._agreement.words
        for index in range(max(0, self._reported - 1), len(committed)):
            word, is_last = committed[index], index + 1 == len(committed)
            following = words[index + 1].text if index + 1 < len(words) else None
            text = (self._agreement.last_heard if is_last else None) or word.text
            paused = final or self._clock_s - word.end_s >= SENTENCE_PAUSE_S
            if (following or paused) and ends_sentence(text, following):
                return index + 1
        return 0

    def _close_overlong(self) -> list[Utterance]:
        """Close at a pause when the window nears the cap, and at the best one there is when it exceeds it.

        What counts as a pause falls from a long one to any at all on the way to the cap.
        """
        closed: list[Utterance] = []
        while (length := self._audio.size / SAMPLE_RATE) > SOFT_CAP * self._max_tail_s:
            agreement = self._agreement
            strain = (length / self._max_tail_s - SOFT_CAP) / (1 - SOFT_CAP)
            if strain <= 1:
                count = best_pause(
                    agreement.words, self._reported, len(agreement.committed), SOFT_PAUSE_S * (1 - strain)
                )
                if count == 0:
                    break
            elif agreement.words:
                heard_s = self._clock_s - self._hold_back_s
                settled = sum(word.end_s <= heard_s for word in agreement.words)
                count = best_pause(agreement.words, self._reported, settled) or len(agreement.words)
                agreement.commit(count - len(agreement.committed))
            else:
                self._drop_front(self._audio.size // 2)
                continue
            closed.append(self._close(count))
        return closed

    def _close(self, count: int) -> Utterance:
        """Close the utterance with its first `count` committed words and cut the window behind them."""
        words = self._agreement.take(count)
        utterance = Utterance(self._next_id, words, final=True)
        self._next_id += 1
        self._shown, self._reported = False, 0
        if words:
            self._closed = words[-1]
            following = self._agreement.words[:1]
            self._drop_front(self._cut(words[-1].end_s, following[0].start_s if following else self._clock_s))
        return utterance

    def _cut(self, end_s: float, next_s: float) -> int:
        """The sample of the window at which to cut between two words: the middle of their gap.

        Word times are off by a tenth of a second at times, so in a narrow gap the quietest place near the middle is
        taken instead.
        """
        middle = round((end_s + next_s) / 2 * SAMPLE_RATE) - self._start
        middle = min(max(middle, 0), self._audio.size)
        frame, reach = round(CUT_FRAME_S * SAMPLE_RATE), round(CUT_REACH_S * SAMPLE_RATE)
        near = self._audio[max(0, middle - reach) : middle + reach]
        frames = near.size // frame
        if (next_s - end_s) * SAMPLE_RATE >= 2 * reach or frames < 3:
            return middle
        energy = np.square(near[: frames * frame].reshape(frames, frame)).sum(axis=1)
        return max(0, middle - reach) + int(energy.argmin()) * frame + frame // 2

    def _drop_front(self, samples: int) -> None:
        self._audio = self._audio[samples:]
        self._start += samples
        self._decoded = max(0, self._decoded - samples)

    def _give_up(self) -> list[Utterance]:
        """The window is full because every decode has failed: close what is known and leave out its older half."""
        closed = [self._close(len(self._agreement.committed))] if self._agreement.committed or self._shown else []
        self._agreement.tail = []
        self._drop_front(max(0, self._audio.size - round(LONGEST_WINDOW_S * SAMPLE_RATE) // 2))
        return closed

    def _open_state(self) -> list[Utterance]:
        committed, tail = tuple(self._agreement.committed), self._shown_tail()
        if not committed and not tail and not self._shown:
            return []
        self._shown, self._reported = True, len(committed)
        return [Utterance(self._next_id, committed, tail)]

    def _shown_tail(self) -> tuple[Word, ...]:
        """The tail without what the end of the audio has made of it: half a word, and marks that close a sentence
        only because the audio ends."""
        tail = list(self._agreement.tail)
        if tail and tail[-1].end_s > self._clock_s - CUT_WORD_S:
            tail.pop()
        if tail and tail[-1].end_s > self._clock_s - SENTENCE_PAUSE_S:
            tail[-1] = replace(tail[-1], text=tail[-1].text.rstrip(OPEN_END_MARKS) or tail[-1].text)
        return tuple(tail)
