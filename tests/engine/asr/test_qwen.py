"""The Qwen3-ASR decoder and the stream over it, on recorded answers and on a voice that answers by itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.asr import qwen_text
from engine.asr.alignment import units
from engine.asr.contract import SAMPLE_RATE, Word
from engine.asr.qwen import QwenDecoder
from engine.asr.speech_engine import RecognitionError
from tests.engine.asr.helpers import Audio, Reader, Speaker, recogniser, sound, text, words

RECORDINGS: dict[str, Any] = json.loads(Path(__file__).with_name("qwen_recordings.json").read_text(encoding="utf-8"))
CLASS_S = 0.08
Heard = list[tuple[str, float, float]]


class Voice:
    """Stands in for `QwenModels`: what is heard in some audio, as a function; the rest as the models would do it.

    The answer goes on behind the text in its head, word by word, whatever that text is.
    """

    class_s = CLASS_S

    def __init__(self, hear: Callable[[Audio], Heard], found: str = "English") -> None:
        self._hear, self._found = hear, found
        self.heads: list[str] = []
        self.contexts: list[str] = []
        self.most: list[int] = []
        self.aligned: list[int] = []
        self.cancelled = False

    def transcribe(
        self, audio: Audio, context: str, head: str, most: int, cancel: Callable[[], bool], exactly: bool = False
    ) -> str | None:
        self.heads.append(head)
        self.contexts.append(context)
        self.most.append(most)
        self.cancelled = self.cancelled or cancel()
        if self.cancelled:
            return None
        _, tag, so_far = head.partition(qwen_text.TEXT_TAG)
        whole = "".join(one for one, _, _ in self._hear(audio))
        found = units(whole)
        rest = whole[found[known].start :] if (known := len(units(so_far))) < len(found) else ""
        mark = found[known - 1].text[-1] if so_far and known <= len(found) else ""
        lead = mark if mark in ".!?。" and mark else ""
        space = " " if so_far and rest and " " in whole else ""
        return f"{lead}{space}{rest}" if tag else f"language {self._found}{qwen_text.TEXT_TAG}{rest}"

    def align(self, audio: Audio, spoken: Sequence[str], cancel: Callable[[], bool]) -> list[int]:
        self.aligned.append(len(spoken))
        times = [(start_s, end_s) for _, start_s, end_s in self._hear(audio)]
        times += [times[-1]] * (len(spoken) - len(times))
        return [round(edge / CLASS_S) for pair in times[: len(spoken)] for edge in pair]


def replayed(name: str) -> tuple[Voice, dict[str, Any]]:
    """Recorded answers by the length of the window; the audio tells where the window begins."""
    recording = RECORDINGS[name]

    def hear(audio: Audio) -> Heard:
        start_s = float(audio[0]) - 1.0
        end_s = start_s + len(audio) / SAMPLE_RATE
        _, whole, times = min(recording["updates"], key=lambda update: abs(update[0] - end_s))
        found = units(whole)
        times = times + [times[-1]] * (len(found) - len(times))
        heard = []
        for at, (unit, (word_start_s, word_end_s)) in enumerate(zip(found, times, strict=True)):
            if (word_start_s + min(word_end_s, 9.0)) / 2 < start_s:
                continue
            stop = found[at + 1].start if at + 1 < len(found) else len(whole)
            heard.append((whole[unit.start : stop], word_start_s - start_s, word_end_s - start_s))
        return [(one, max(0.0, a), max(0.0, b)) for one, a, b in heard]

    return Voice(hear, recording.get("found", "English")), recording


def clock(seconds: float, start_s: float = 0.0) -> Audio:
    """Audio that tells its own time: one more than the second on the clock."""
    return (1.0 + start_s + np.arange(round(seconds * SAMPLE_RATE)) / SAMPLE_RATE).astype(np.float32)


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_answers_become_utterances(name: str) -> None:
    voice, recording = replayed(name)
    stream = recogniser(QwenDecoder(voice, recording["language"]), hold_back_ms=300)  # type: ignore[arg-type]
    reader, at_s = Reader(), 0.0
    for end_s, _, _ in recording["updates"]:
        reader.take(stream.push(clock(end_s - at_s, at_s), at_s))
        at_s = end_s
    reader.take(stream.finish())
    assert reader.said == recording["said"]


def test_committed_words_are_the_prefix_of_the_next_answer() -> None:
    voice, _ = replayed("an edge that is heard wrong first")
    stream = recogniser(QwenDecoder(voice, "en"))  # type: ignore[arg-type]
    for second in range(4):
        stream.push(clock(1.0, float(second)), float(second))
    assert voice.heads[0] == "language English<asr_text>"
    assert voice.heads[3] == "language English<asr_text>We will start in"
    assert voice.most[3] < voice.most[2] + 10  # only what is behind the prefix has to be written


def test_the_language_found_is_kept_for_the_utterance() -> None:
    voice, _ = replayed("the language is found")
    stream = recogniser(QwenDecoder(voice, ""))  # type: ignore[arg-type]
    for second in range(3):
        stream.push(clock(1.0, float(second)), float(second))
    stream.push(clock(0.5, 3.0), 3.0)
    stream.finish()
    assert voice.heads[0] == ""
    assert voice.heads[-1] == "language German<asr_text>Guten Tag zusammen"


def test_a_full_stop_is_asked_for_again() -> None:
    """The prefix leaves it out, and what the model then writes there decides about the end of the sentence."""
    voice = Voice(lambda audio: [("We ", 0.1, 0.3), ("go. ", 0.4, 0.6), ("Then", 0.9, 1.2)])
    committed = [Word("We", 0.1, 0.3), Word("go", 0.4, 0.6)]
    heard = QwenDecoder(voice, "en").decode(sound(2), committed)  # type: ignore[arg-type]
    assert voice.heads == ["language English<asr_text>We go"]
    assert text(heard) == "We go. Then"
    assert heard[0] == committed[0]
    assert heard[1].end_s == committed[1].end_s
    QwenDecoder(voice, "en").decode(sound(2), [committed[0], Word("go.", 0.4, 0.6)])  # type: ignore[arg-type]
    assert voice.heads[1] == "language English<asr_text>We go"


def test_no_speech_is_no_words() -> None:
    voice = Voice(lambda audio: [], found="None")
    assert QwenDecoder(voice, "").decode(sound(1), []) == []  # type: ignore[arg-type]
    assert QwenDecoder(voice, "en").decode(sound(1), []) == []  # type: ignore[arg-type]
    assert voice.aligned == []


def test_the_echo_of_the_context_is_left_out() -> None:
    terms = "Kubernetes, Prometheus, Grafana, Jaeger, Loki"
    voice = Voice(lambda audio: [(f"{term} ", 0.5, 0.5) for term in terms.split()])
    assert QwenDecoder(voice, "en", terms).decode(sound(2), []) == []  # type: ignore[arg-type]
    assert voice.contexts == [terms]


def test_closing_ends_a_decode() -> None:
    voice = Voice(lambda audio: [("we", 0.1, 0.4)])
    decoder = QwenDecoder(voice, "en")  # type: ignore[arg-type]
    committed = words("so")
    decoder.close()
    assert decoder.decode(sound(2), committed) == committed
    assert voice.cancelled


def test_a_language_that_has_no_times_is_one_sentence(caplog: pytest.LogCaptureFixture) -> None:
    voice = Voice(lambda audio: [("Goedemorgen", 0.1, 0.8)], found="Dutch")
    with pytest.raises(RecognitionError, match=r"^The forced aligner has no times for Dutch; it knows de, en, es"):
        QwenDecoder(voice, "nl")  # type: ignore[arg-type]
    with pytest.raises(RecognitionError, match=r"^Qwen3-ASR does not know the language 'tlh'"):
        QwenDecoder(voice, "tlh")  # type: ignore[arg-type]
    decoder = QwenDecoder(voice, "")  # type: ignore[arg-type]
    with caplog.at_level(logging.WARNING):
        assert text(decoder.decode(sound(1), [])) == "Goedemorgen"
        decoder.decode(sound(1), [])
    assert caplog.text.count("not trained on Dutch") == 1


def test_tokens_are_bounded_by_the_audio_behind_the_prefix() -> None:
    voice = Voice(lambda audio: [("we", 0.1, 0.4)])
    decoder = QwenDecoder(voice, "en")  # type: ignore[arg-type]
    decoder.decode(sound(10), [])
    decoder.decode(sound(10), [Word("we", 0.1, 9.0)])
    forced = QwenDecoder(voice, "en", forced_tokens_per_s=3.5)  # type: ignore[arg-type]
    forced.decode(sound(10), [])
    assert voice.most == [116, 26, 35]


def spoken_by(speaker: Speaker) -> Callable[[Audio], Heard]:
    return lambda audio: [(f"{word.text} ", word.start_s, word.end_s) for word in speaker.decode(audio, ())]


NAMES = st.sampled_from("a bb ccc, D. e? Dr. f… 3.5 no no GPU ill-disposed".split())


@settings(max_examples=60)
@given(
    st.lists(NAMES, min_size=3, max_size=20),
    st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=12),
    st.lists(st.integers(-3, 3), min_size=7, max_size=7),
    st.sampled_from([0, 250, 300]),
    st.sampled_from(["en", ""]),
)
def test_committed_words_stay_times_rise_and_lie_before_the_clock(
    said: list[str], pieces: list[tuple[int, bool]], jitter: list[int], hold_back_ms: int, language: str
) -> None:
    """`Reader` asserts it at every transcript, whatever times the aligner gives and however the audio comes."""
    speaker = Speaker(said, word_s=0.25, wobble=lambda call, number: CLASS_S * jitter[(call + number) % 7])
    decoder = QwenDecoder(Voice(spoken_by(speaker)), language)  # type: ignore[arg-type]
    stream = recogniser(decoder, chunk_ms=500, hold_back_ms=hold_back_ms, max_tail_s=3.0)
    reader, at_s, number = Reader(), 0.0, 0
    for count, finish in pieces:
        before = stream._hold_back_s
        transcript = reader.take(stream.push(speaker.audio(number, count), at_s))
        for utterance in transcript.utterances:
            if not utterance.final and utterance.committed:
                assert utterance.committed[-1].end_s <= transcript.clock_s - before + 1e-6
        number, at_s = number + count, at_s + 0.25 * count
        if finish:
            reader.take(stream.finish())
    reader.take(stream.finish())
    assert reader.open is None
    assert speaker.longest <= (3.0 + 0.5) * SAMPLE_RATE


def test_three_hours_without_a_mark_or_a_pause_cost_the_same_at_every_update() -> None:
    said = [f"word{number}" for number in range(997)]
    speaker = Speaker(said, word_s=0.8)
    voice = Voice(spoken_by(speaker))
    stream = recogniser(QwenDecoder(voice, "en"), chunk_ms=4000, max_tail_s=12.0)  # type: ignore[arg-type]
    reader, piece, count = Reader(), 25, 13_500  # 20 s of 3 h
    for first in range(0, count, piece):
        reader.take(stream.push(speaker.audio(first, piece), first * 0.8))
    reader.take(stream.finish())
    heard = " ".join(reader.said).split()
    assert heard == [said[number % len(said)] for number in range(count)]
    assert speaker.longest <= (12 + 4) * SAMPLE_RATE
    assert max(voice.aligned) <= (12 + 4) / 0.8 + 1
    assert max(voice.most) <= 16 + 10 * (12 + 4)
    assert max(map(len, voice.heads)) <= 40 + 8 * (12 + 4) / 0.8
