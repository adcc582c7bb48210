"""The model of the screen: append-only under any order of captions, bounded, and quiet when nothing changes."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.subtitles import KEPT, Line, Run, Subtitles
from engine.messages import Caption


def caption(uid: int, stable: str, held: str = "", final: bool = False, source: str = "", tail: str = "") -> Caption:
    return Caption(uid, stable, held, source, tail, None, final, "test", 0.0, 1.0, 1.0, 1.0)


def test_stable_and_held_are_separate_runs() -> None:
    model = Subtitles()
    assert model.apply(caption(0, "Guten", " Morgen", source="Good", tail="morning"))
    (line,) = model.lines
    assert line.runs == (Run("Guten", held=False), Run(" Morgen", held=True))
    assert "".join(run.text for run in line.source_runs) == "Good morning"


def test_a_final_has_nothing_held() -> None:
    model = Subtitles()
    model.apply(caption(0, "Guten Morgen.", "rest", final=True, source="Good morning.", tail="rest"))
    assert model.lines[0].runs == (Run("Guten Morgen.", held=False),)
    assert model.lines[0].source_tail == ""


@pytest.mark.parametrize(
    "bad",
    [caption(0, "Guter Tag"), caption(0, "Gut"), caption(0, ""), caption(0, "guten Morgen", final=True)],
)
def test_a_change_of_stable_text_is_dropped_counted_and_logged(bad: Caption, caplog: pytest.LogCaptureFixture) -> None:
    model = Subtitles()
    model.apply(caption(0, "Guten Morgen"))
    seen: list[Line | None] = []
    model.changed.subscribe(seen.append)
    with caplog.at_level(logging.ERROR):
        assert not model.apply(bad)
    assert model.violations == 1
    assert seen == []
    assert model.lines[0].stable == "Guten Morgen"
    assert "dropped" in caplog.text


def test_an_utterance_does_not_grow_after_its_final() -> None:
    model = Subtitles()
    model.apply(caption(0, "Guten Morgen", final=True))
    assert not model.apply(caption(0, "Guten Morgen zusammen"))
    assert not model.apply(caption(0, "Guten Morgen", "late"))
    assert model.apply(caption(0, "Guten Morgen", final=True)), "said twice does no harm"
    assert model.lines[0].held == ""


def test_a_new_session_counts_anew_and_keeps_what_was_stable() -> None:
    model = Subtitles()
    model.begin()
    model.apply(caption(0, "Guten", " Morgen"))
    model.apply(caption(1, "", "nur gehalten"))
    model.begin()
    assert [line.runs for line in model.lines] == [(Run("Guten", held=False),)]
    assert model.apply(caption(0, "Neu"))
    assert [line.stable for line in model.lines] == ["Guten", "Neu"]


def test_an_older_utterance_takes_its_place_in_the_order() -> None:
    model = Subtitles()
    model.apply(caption(0, "", "", source=""))
    model.apply(caption(1, "zwei"))
    model.apply(caption(0, "eins", final=True))
    assert [line.stable for line in model.lines] == ["eins", "zwei"]


def test_nothing_is_said_when_nothing_changed() -> None:
    model = Subtitles()
    model.apply(caption(0, "Guten"))
    seen: list[Line | None] = []
    model.changed.subscribe(seen.append)
    assert model.apply(caption(0, "Guten"))
    assert seen == []


def test_memory_is_bounded_over_a_long_session() -> None:
    model = Subtitles()
    for uid in range(3000):
        assert model.apply(caption(uid, f"Satz {uid}", final=True))
    assert len(model.lines) == KEPT
    assert not model.apply(caption(5, "Satz 5 ist anders"))


@st.composite
def streams(draw: st.DrawFn) -> list[Caption]:
    texts = st.text("ab ", max_size=4)
    rows = draw(st.lists(st.tuples(st.integers(0, 3), texts, texts, st.booleans()), max_size=40))
    return [caption(uid, stable, held, final) for uid, stable, held, final in rows]


@given(streams())
def test_what_is_shown_as_stable_only_ever_grows(stream: list[Caption]) -> None:
    model = Subtitles()
    shown: dict[tuple[int, int], str] = {}
    for item in stream:
        model.apply(item)
        for line in model.lines:
            assert line.stable.startswith(shown.get(line.key, ""))
            shown[line.key] = line.stable
        assert [line.key for line in model.lines] == sorted(line.key for line in model.lines)
