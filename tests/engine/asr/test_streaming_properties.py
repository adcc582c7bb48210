"""What holds for the streaming recogniser whatever a decoder says and however audio comes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine.asr.contract import SAMPLE_RATE, Word
from tests.engine.asr.helpers import Reader, ScriptedDecoder, Speaker, recogniser, sound

WORDS = st.lists(
    st.builds(
        lambda name, start_s, length_s: Word(name, start_s, start_s + length_s),
        st.sampled_from("a b c, D. e? f... — Dr.".split()),
        st.floats(0, 2.5),
        st.floats(0, 1),
    ),
    max_size=7,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.floats(0, 1.5)),
        st.tuples(st.just("gap"), st.floats(-0.3, 1.5)),
        st.tuples(st.sampled_from(["pause", "finish"]), st.just(0.0)),
    ),
    max_size=25,
)


@given(
    st.lists(WORDS, min_size=1, max_size=10),
    STEPS,
    st.sampled_from([0, 100, 300]),
    st.booleans(),
)
def test_committed_words_stay_and_times_lie_on_the_clock(
    hypotheses: list[list[Word]], steps: list[tuple[str, float]], hold_back_ms: int, coalesce: bool
) -> None:
    decoder = ScriptedDecoder(*hypotheses)
    stream = recogniser(
        decoder, chunk_ms=200, hold_back_ms=hold_back_ms, silence_ms=400, max_tail_s=1.5, coalesce=coalesce
    )
    reader, at_s = Reader(), 0.0
    for step, value in steps:
        if step == "push":
            reader.take(stream.push(sound(value), at_s))
            at_s += value
        elif step == "gap":
            at_s = max(0.0, at_s + value)
        else:
            reader.take(stream.pause() if step == "pause" else stream.finish())
    reader.take(stream.finish())
    assert reader.open is None
    assert stream.finish().utterances == ()
    assert all(size <= (1.5 + 0.2) * SAMPLE_RATE for size in decoder.windows)


@given(st.lists(st.integers(1, 9000), min_size=1, max_size=12), st.lists(st.booleans(), min_size=12, max_size=12))
def test_a_push_of_everything_equals_many_pushes(pieces: list[int], ends: list[bool]) -> None:
    said = [f"w{number}{'.' if end else ''}" for number, end in enumerate(ends)]

    def run(sizes: list[int]) -> tuple[list[str], list[list[Word]], int]:
        speaker = Speaker(said, word_s=0.25)
        audio = speaker.audio(0, 40)[: sum(pieces) * 2]
        stream, reader, at = recogniser(speaker, chunk_ms=500, max_tail_s=3.0), Reader(), 0
        for size in sizes:
            reader.take(stream.push(audio[at : at + size], at / SAMPLE_RATE))
            at += size
        reader.take(stream.push(audio[at:], at / SAMPLE_RATE))
        reader.take(stream.finish())
        return reader.said, [list(one.committed) for one in reader.closed], speaker.calls

    assert run([]) == run(pieces)


def test_three_hours_without_a_pause_or_a_mark_cost_the_same_at_every_update() -> None:
    """No sentence mark, no pause, times that wobble: the window stays below its cap and no word is lost or doubled."""
    said = [f"word{number}" for number in range(997)]
    speaker = Speaker(said, word_s=0.4, wobble=lambda call, number: 0.02 * ((call + number) % 3 - 1))
    stream, reader = recogniser(speaker, chunk_ms=2000, max_tail_s=12.0), Reader()
    piece, words = 50, 27_000  # 20 s of 3 h
    for first in range(0, words, piece):
        reader.take(stream.push(speaker.audio(first, piece), first * 0.4))
        held = len(reader.open.committed) + len(reader.open.tail) if reader.open else 0
        assert held <= 12.0 / 0.4 + 5
    reader.take(stream.finish())
    heard = " ".join(reader.said).split()
    assert heard == [said[number % len(said)] for number in range(words)]
    assert speaker.longest <= (12 + 2) * SAMPLE_RATE  # the cap and one chunk
    assert max(len(one.committed) for one in reader.closed) <= 12.0 / 0.4


def test_an_hour_of_sound_without_words_holds_no_more_than_a_window() -> None:
    decoder = ScriptedDecoder([])
    stream, reader = recogniser(decoder, chunk_ms=2000), Reader()
    noise = np.full(60 * SAMPLE_RATE, 0.1, np.float32)
    for minute in range(60):
        reader.take(stream.push(noise, minute * 60.0))
    assert stream.finish().utterances == ()
    assert reader.closed == []
    assert max(decoder.windows) <= (12 + 2) * SAMPLE_RATE
