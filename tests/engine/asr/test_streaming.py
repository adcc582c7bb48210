"""The streaming recogniser on scripted decoders: what is shown, committed, closed and cut, and when."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from engine.asr.contract import SAMPLE_RATE, Transcript, Utterance, Word
from engine.asr.streaming import StreamingRecogniser
from tests.engine.asr.helpers import Audio, Reader, ScriptedDecoder, recogniser, sound, text, words


def shown(transcript: Transcript) -> list[tuple[int, str, str, bool]]:
    return [(one.utterance_id, text(one.committed), text(one.tail), one.final) for one in transcript.utterances]


def speak(stream: StreamingRecogniser, seconds: int) -> list[Transcript]:
    """Push one second after another; the transcript of each."""
    start_s = stream._end / SAMPLE_RATE
    return [stream.push(sound(1), start_s + second) for second in range(seconds)]


def test_what_two_decodes_agree_on_is_committed() -> None:
    stream = recogniser(ScriptedDecoder("we", "we go home", "we go hole now"))
    first, second, third = speak(stream, 3)
    assert shown(first) == [(0, "", "we", False)]
    assert shown(second) == [(0, "we", "go home", False)]
    assert shown(third) == [(0, "we go", "hole now", False)]
    assert third.clock_s == 3.0
    assert shown(stream.finish()) == [(0, "we go hole now", "", True)]
    assert stream.finish().utterances == ()


def test_less_than_a_chunk_waits_for_more() -> None:
    decoder = ScriptedDecoder("we")
    stream = recogniser(decoder)
    assert stream.push(sound(0.6), 0.0).utterances == ()
    assert decoder.windows == []
    assert shown(stream.push(sound(0.6), 0.6)) == [(0, "", "we", False)]
    assert decoder.windows == [SAMPLE_RATE]


def test_times_that_wobble_change_nothing() -> None:
    steps = [words("one two three four"[: 4 * size], 0.1 + 0.04 * (-1) ** size) for size in range(1, 6)]
    stream, reader = recogniser(ScriptedDecoder(*steps)), Reader()
    for transcript in speak(stream, 5):
        reader.take(transcript)
    reader.take(stream.finish())
    assert reader.said == ["one two three four"]


def test_a_sentence_is_closed_when_its_next_word_is_heard() -> None:
    decoder = ScriptedDecoder("we go", "we go home. Then", "we go home. Then rest", "then rest well")
    stream = recogniser(decoder)
    *_, third, fourth = speak(stream, 4)
    assert shown(third) == [(0, "we go home.", "", True), (1, "Then", "rest", False)]
    assert decoder.windows == [16_000, 32_000, 48_000, decoder.windows[3]]
    assert decoder.windows[3] < 64_000 - 1.3 * SAMPLE_RATE  # cut near the end of "home.", at 1.5 s
    assert [text(one) for one in decoder.committed] == ["", "", "we go", "Then"]
    assert decoder.committed[3][0].start_s == pytest.approx(0.0, abs=0.3)  # on the window's clock
    assert fourth.utterances[0].committed[0].text == "Then"


def test_a_sentence_is_closed_when_a_pause_follows() -> None:
    stream = recogniser(ScriptedDecoder("we go.", "we go."))
    first, second = speak(stream, 2)
    assert shown(first) == [(0, "", "we", False)]
    assert shown(second) == [(0, "we go.", "", True)]  # 1 s behind its end
    pausing = recogniser(ScriptedDecoder("we go."))
    pausing.push(sound(0.9), 0.0)
    pausing.push(sound(0.8), 0.9)
    assert shown(pausing.pause()) == [(0, "we go.", "", True)]


def test_a_full_stop_that_is_heard_late_still_ends_the_sentence() -> None:
    stream = recogniser(ScriptedDecoder("we go", "we go", "we go. Then we", "we go. Then we"))
    _, second, third, *_ = speak(stream, 3)
    assert shown(second) == [(0, "we go", "", False)]
    assert shown(third)[0] == (0, "we go", "", True)  # committed text stays as it was
    assert shown(third)[1][0] == 1


def test_an_abbreviation_ends_nothing() -> None:
    stream = recogniser(ScriptedDecoder("ask Dr. Smith now"))
    assert not any(one.final for transcript in speak(stream, 4) for one in transcript.utterances)


def test_the_echo_of_the_last_word_behind_the_cut_is_dropped() -> None:
    echo = [Word("home.", 0.0, 0.2), *words("Then rest", 0.2)]
    stream, reader = recogniser(ScriptedDecoder("we go home. Then", "we go home. Then", echo, echo)), Reader()
    for transcript in speak(stream, 4):
        reader.take(transcript)
    reader.take(stream.finish())
    assert reader.said == ["we go home.", "Then rest"]


def test_a_word_said_twice_over_the_cut_stays() -> None:
    twice = ScriptedDecoder("go now. Now we", "go now. Now we", words("Now we rest", 0.1), words("Now we rest", 0.1))
    stream, reader = recogniser(twice), Reader()
    for transcript in speak(stream, 4):
        reader.take(transcript)
    reader.take(stream.finish())
    assert reader.said == ["go now.", "Now we rest"]


def test_a_pause_settles_words_without_a_second_decode() -> None:
    decoder = ScriptedDecoder("we go home")
    stream = recogniser(decoder)
    assert stream.push(sound(0.9), 0.0).utterances == ()
    assert shown(stream.pause()) == [(0, "we", "go", False)]  # "go" ends in the hold-back, "home" with the audio
    assert shown(stream.push(sound(0.9), 0.9)) == []
    assert shown(stream.pause()) == [(0, "we go home", "", False)]
    assert stream.pause().utterances == ()  # nothing new was heard
    assert len(decoder.windows) == 2


def test_stop_in_mid_word_keeps_the_last_words() -> None:
    stream = recogniser(ScriptedDecoder("we go", "we go ho-"))
    speak(stream, 1)
    assert stream.push(sound(0.3), 1.0).utterances == ()
    assert shown(stream.finish()) == [(0, "we go ho-", "", True)]


def test_a_final_of_several_sentences_closes_each() -> None:
    stream = recogniser(ScriptedDecoder("we go. Then rest. And sleep"))
    stream.push(sound(0.9), 0.0)
    finals = shown(stream.finish())
    assert [one[1] for one in finals] == ["we go.", "Then rest.", "And sleep"]
    assert [one[0] for one in finals] == [0, 1, 2]


@pytest.mark.parametrize(
    ("heard", "tail"),
    [
        ([Word("we", 0.0, 0.5), Word("wal-", 0.5, 0.95)], "we"),  # half a word
        ([Word("we", 0.0, 0.4), Word("walk.", 0.4, 0.8)], "we walk"),  # a full stop that the end of the audio made
        ([Word("we", 0.0, 0.2), Word("walk.", 0.2, 0.35)], "we walk."),  # a real one
        ([Word("...", 0.4, 0.8)], "..."),  # nothing but marks
        ([Word("what?", 0.0, 0.6), Word("so", 0.6, 1.0)], "what"),
    ],
)
def test_the_shown_tail_leaves_out_what_the_end_of_the_audio_made(heard: list[Word], tail: str) -> None:
    stream = recogniser(ScriptedDecoder(heard))
    assert shown(speak(stream, 1)[0])[0][2] == tail
    assert text(word for one in stream.finish().utterances for word in one.committed) == text(heard)


def test_a_short_jump_is_silence_inside_the_utterance() -> None:
    decoder = ScriptedDecoder("we go")
    stream = recogniser(decoder)
    stream.push(sound(0.5), 1.0)
    transcript = stream.push(sound(0.5), 2.0)
    assert decoder.windows == [SAMPLE_RATE]
    assert transcript.utterances[0].tail[0].start_s == 1.0
    assert stream.finish().clock_s == 2.5


def test_a_long_jump_closes_the_utterance() -> None:
    stream, reader = recogniser(ScriptedDecoder("we go home", "and rest")), Reader()
    reader.take(stream.push(sound(1), 0.0))
    reader.take(stream.push(sound(1), 9.0))
    assert reader.said == ["we go home"]
    assert reader.open is not None
    assert reader.open.tail[0].start_s == 9.0


def test_audio_from_before_the_end_is_put_behind_it() -> None:
    stream = recogniser(ScriptedDecoder("we go"))
    speak(stream, 2)
    assert stream.push(sound(1), 0.5).clock_s == 3.0


def test_words_that_vanish_close_an_empty_utterance() -> None:
    stream, reader = recogniser(ScriptedDecoder("uh", [], "so")), Reader()
    reader.take(speak(stream, 1)[0])
    assert shown(reader.take(stream.push(sound(1), 1.0))) == [(0, "", "", False)]
    assert shown(reader.take(stream.push(sound(1), 8.0))) == [(0, "", "", True), (1, "", "so", False)]


def test_very_little_audio_is_not_decoded() -> None:
    decoder = ScriptedDecoder("ghost")
    stream = recogniser(decoder)
    stream.push(sound(0.05), 0.0)
    assert stream.finish().utterances == ()
    assert decoder.windows == []


def test_reset_begins_again_at_utterance_0() -> None:
    decoder = ScriptedDecoder("we go.")
    stream = recogniser(decoder)
    stream.push(sound(1), 5.0)
    stream.finish()
    stream.push(sound(1), 6.0)
    stream.reset()
    assert stream.finish().utterances == ()
    assert shown(stream.push(sound(1), 0.0))[0][0] == 0
    assert decoder.committed[-1] == []


def test_an_engine_that_is_behind_decodes_once() -> None:
    behind, steady = ScriptedDecoder("we go"), ScriptedDecoder("we go")
    recogniser(behind, coalesce=True).push(sound(6), 0.0)
    recogniser(steady).push(sound(6), 0.0)
    assert (len(behind.windows), len(steady.windows)) == (1, 6)


def test_a_decoder_that_fails_costs_its_update_only() -> None:
    class Failing(ScriptedDecoder):
        def decode(self, audio: Audio, committed: Sequence[Word]) -> list[Word]:
            heard = super().decode(audio, committed)
            if len(self.windows) in (3, 5):
                raise RuntimeError("out of order")
            return heard

    hypotheses = ["we go. Then rest", "we go. Then rest", "lost", words("Then rest well", 0.1)]
    stream, reader = recogniser(Failing(*hypotheses)), Reader()
    with pytest.raises(RuntimeError):
        stream.push(sound(3), 0.0)  # the second decode has closed an utterance, the third fails
    reader.take(stream.push(sound(1), 3.0))
    assert reader.said == ["we go."]
    stream.push(sound(0.5), 4.0)
    with pytest.raises(RuntimeError):
        stream.finish()
    reader.take(stream.finish())
    assert reader.said == ["we go.", "Then rest well"]


def test_the_cut_falls_into_the_quietest_place_of_a_narrow_gap() -> None:
    audio = sound(3)
    audio[round(1.06 * SAMPLE_RATE) : round(1.1 * SAMPLE_RATE)] = 0.0
    decoder = ScriptedDecoder("we go. Then rest", "we go. Then rest", "Then rest")
    stream = recogniser(decoder)
    for second in range(3):
        stream.push(audio[second * SAMPLE_RATE : (second + 1) * SAMPLE_RATE], float(second))
    assert decoder.windows[2] == pytest.approx((3 - 1.08) * SAMPLE_RATE, abs=0.02 * SAMPLE_RATE)


def test_utterances_are_plain_and_final_ones_have_no_tail() -> None:
    stream = recogniser(ScriptedDecoder("we go home. Then"))
    for transcript in [*speak(stream, 3), stream.finish()]:
        for one in transcript.utterances:
            assert isinstance(one, Utterance)
            assert not (one.final and one.tail)
    assert np.isfinite(stream.finish().clock_s)


def test_what_is_no_number_is_silence_and_counted() -> None:
    decoder = ScriptedDecoder("we go")
    stream = recogniser(decoder)
    stream.push(np.full(SAMPLE_RATE, np.nan, np.float32), 0.0)
    assert decoder.windows == []
    assert (stream.dropped.samples, stream.dropped.windows) == (SAMPLE_RATE, 1)
    broken = sound(1)
    broken[7] = np.inf
    stream.push(broken, 1.0)
    assert decoder.windows == [2 * SAMPLE_RATE]
    assert stream.dropped.samples == SAMPLE_RATE + 1
    stream.push(np.zeros(SAMPLE_RATE, np.float32), 2.0)
    assert len(decoder.windows) == 2  # there is sound further in front


def test_silence_alone_never_reaches_the_model(caplog: pytest.LogCaptureFixture) -> None:
    decoder = ScriptedDecoder("ghost")
    stream = recogniser(decoder)
    stream.push(np.zeros(3 * SAMPLE_RATE, np.float32), 0.0)
    assert stream.finish().utterances == ()
    assert decoder.windows == []
    stream.reset()
    assert "0 samples were no numbers, 3 windows held no sound" in caplog.text
    assert stream.dropped.windows == 0


def test_a_decoder_that_fails_for_long_does_not_fill_the_window_for_ever() -> None:
    class Failing(ScriptedDecoder):
        broken = True

        def decode(self, audio: Audio, committed: Sequence[Word]) -> list[Word]:
            heard = super().decode(audio, committed)
            if self.broken and len(self.windows) > 2:
                raise RuntimeError("out of order")
            return heard

    decoder = Failing("we go", "we go", words("well then", 0.5))
    stream, reader = recogniser(decoder), Reader()
    for second in range(60):
        try:
            reader.take(stream.push(sound(1), float(second)))
        except RuntimeError:
            continue
    assert max(decoder.windows) <= 29.5 * SAMPLE_RATE
    decoder.broken = False
    for second in range(60, 64):
        reader.take(stream.push(sound(1), float(second)))
    reader.take(stream.finish())
    assert reader.said[0] == "we go"
    assert "well then" in reader.said[-1]


def test_close_ends_the_decoder() -> None:
    decoder = ScriptedDecoder("we go")
    recogniser(decoder).close()
    assert decoder.closed
