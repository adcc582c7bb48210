"""The figures of a session, against values counted by hand."""

from __future__ import annotations

import pytest

from engine.alignatt.policy import COMMIT_FAST_PATH
from engine.benchmarks.lag import session_figures, stable_words
from engine.benchmarks.processes import drift_mib
from engine.schemas import CaptionLine


def caption(
    seq: int, stable: str, emitted_s: float, *, held: str = "", final: bool = False, reason: str = ""
) -> CaptionLine:
    return CaptionLine(
        seq=seq,
        utterance_id=0,
        stable=stable,
        held=held,
        source_stable="",
        source_tail="",
        covered_source_units=None,
        final=final,
        reason=reason,
        start_s=1.0,
        end_s=5.0,
        audio_s=5.0,
        emitted_s=emitted_s,
        lag_s=None,
        stages={},
    )


CAPTIONS = [
    caption(0, "", 2.0, held=" wir"),
    caption(1, "wir gehen", 4.0, reason=COMMIT_FAST_PATH),
    caption(2, "wir gehen nach Hause.", 7.0, final=True),
]


def test_lag_by_hand() -> None:
    words = stable_words(CAPTIONS, "de")
    assert [word.said_s for word in words] == [2.0, 3.0, 4.0, 5.0]
    assert [word.lag_s for word in words] == [2.0, 1.0, 3.0, 2.0]
    figures = session_figures(CAPTIONS, "de")
    assert figures.mean_lag_s == pytest.approx(2.0)
    assert (figures.stable_before_final, figures.utterances_with_held) == (0.5, 1.0)
    assert (figures.releases_on_commit, figures.retractions) == (1, 0)


def test_a_word_that_grows_counts_when_it_is_whole() -> None:
    captions = [caption(0, "Wort", 2.0), caption(1, "Wortschatz", 3.0, final=True)]
    assert [word.stable_s for word in stable_words(captions, "de")] == [3.0]


def test_punctuation_that_follows_does_not_delay_its_word() -> None:
    captions = [caption(0, "Haus", 2.0), caption(1, "Haus.", 3.0, final=True)]
    assert [word.stable_s for word in stable_words(captions, "de")] == [2.0]


def test_a_retraction_is_counted() -> None:
    captions = [caption(0, "wir gehen", 2.0), caption(1, "ihr geht", 3.0, final=True)]
    assert session_figures(captions, "de").retractions == 1


def test_an_empty_session_has_no_figures() -> None:
    figures = session_figures([], "de")
    assert (figures.mean_lag_s, figures.stable_before_final, figures.utterances_with_held) == (None, None, None)


def test_memory_growth_leaves_out_the_start() -> None:
    assert drift_mib([0.0] * 4 + [100.0] * 16) == 0
    assert drift_mib([0.0] * 4 + [100.0 + at for at in range(16)]) == pytest.approx(12)
    assert drift_mib([1.0] * 19) is None
