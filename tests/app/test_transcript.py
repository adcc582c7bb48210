from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.controller import Gap, SessionEnded
from app.session_files import (
    bookmark_session,
    delete_session,
    find_session,
    interrupted_sessions,
    is_running,
    newest,
    recover_session,
    session_files,
    summarise,
)
from app.session_record import TranscriptError, read_session
from app.transcript import Transcript, TranscriptProblem
from engine.messages import Activity
from tests.app.captions import BEGAN, ENDED, caption

ROOT = Path(__file__).resolve().parents[2]


def recorded(folder: Path, *events: object) -> Transcript:
    transcript = Transcript(folder)
    for event in (BEGAN, *events):
        transcript.event(event)  # type: ignore[arg-type]
    return transcript


def journal(transcript: Transcript) -> Path:
    assert transcript.path
    return transcript.path


def test_reads_back_what_was_recorded(tmp_path: Path) -> None:
    transcript = recorded(
        tmp_path,
        caption(0, "Guten", "Good"),
        Activity(1.0, 1.0, True, 0.5),
        caption(0, "Guten Morgen.", "Good morning.", final=True, end_s=1.8),
        Gap(1.8, 2.0),
        caption(1, "", "How"),
        caption(1, "Wie", "How are"),
        ENDED,
    )
    found = read_session(journal(transcript))
    assert [(u.source, u.target, u.start_s, u.end_s, u.final) for u in found.utterances] == [
        ("Good morning.", "Guten Morgen.", 0.0, 1.8, True),
        ("How are", "Wie", 2.0, 3.5, False),
    ]
    assert (found.title, found.preset, found.source_lang, found.target_lang) == ("talk.wav", "laptop", "en", "de")
    assert found.gaps == ((1.8, 2.0),)
    assert found.ended
    assert found.audio_s == 12.0
    assert found == transcript.record()


def test_only_growth_of_stable_text_is_written(tmp_path: Path) -> None:
    transcript = recorded(tmp_path, caption(0, "Guten", "Good"))
    size = journal(transcript).stat().st_size
    transcript.event(caption(0, "Guten", "Good", held=" Tag"))
    assert journal(transcript).stat().st_size == size
    transcript.event(caption(0, "Guten Tag", "Good"))
    assert journal(transcript).stat().st_size > size
    transcript.close()


def test_stable_text_that_changes_is_refused(tmp_path: Path) -> None:
    transcript = recorded(
        tmp_path, caption(0, "Guten Tag", "Good"), caption(0, "Anders", "Good"), caption(0, "Guten", "Good"), ENDED
    )
    assert read_session(journal(transcript)).utterances[0].target == "Guten Tag"


TEXT = st.text(max_size=6)
STEPS = st.lists(st.tuples(st.integers(0, 3), TEXT, TEXT, st.booleans()), max_size=25)


@given(STEPS)
@settings(max_examples=30, deadline=None)
def test_any_order_of_updates_only_ever_adds(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    """Cumulative captions in any order: what a reader sees after each step begins with what it saw before."""
    transcript = recorded(tmp_path_factory.mktemp("sessions"))
    texts: dict[int, tuple[str, str]] = {}
    before: dict[int, str] = {}
    for utterance_id, target, source, final in steps:
        old = texts.get(utterance_id, ("", ""))
        texts[utterance_id] = (old[0] + target, old[1] + source)
        transcript.event(caption(utterance_id, *texts[utterance_id], final=final))
        now = {u.utterance_id: u.target for u in read_session(journal(transcript)).utterances}
        assert all(now[key].startswith(text) for key, text in before.items())
        before = now
    assert read_session(journal(transcript)) == transcript.record()
    transcript.event(ENDED)


def test_a_file_cut_anywhere_is_read(tmp_path: Path) -> None:
    events = [caption(i // 3, "Grüße und mehr"[: 5 * (i % 3 + 1)], "Hello", final=i % 3 == 2) for i in range(9)]
    whole = journal(recorded(tmp_path / "whole", *events, ENDED)).read_bytes()
    first = whole.index(b"\n")
    seen = 0
    for cut in range(len(whole)):
        path = tmp_path / "cut.jsonl"
        path.write_bytes(whole[:cut])
        if 0 < cut < first:
            with pytest.raises(TranscriptError):
                read_session(path)
            continue
        found = read_session(path)
        assert found.damaged_lines <= 1
        assert len(found.utterances) >= seen
        seen = len(found.utterances)
    assert seen == 3


def test_damage_in_the_middle_costs_one_line(tmp_path: Path) -> None:
    path = journal(
        recorded(tmp_path, caption(0, "Eins", "One", final=True), caption(1, "Zwei", "Two", final=True), ENDED)
    )
    lines = path.read_bytes().split(b"\n")
    lines[1:1] = [b"\0\0\0", b"[1, 2]", b"{", b'{"type": "final"}', b"\xff\xfe", b'{"type": "later", "x": 1}']
    path.write_bytes(b"\n".join(lines))
    found = read_session(path)
    assert [u.target for u in found.utterances] == ["Eins", "Zwei"]
    assert found.damaged_lines == 5


def test_a_killed_process_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import itertools, sys
        from pathlib import Path
        from app.transcript import Transcript
        from tests.app.captions import BEGAN, caption
        transcript = Transcript(Path(sys.argv[1]))
        transcript.event(BEGAN)
        for number in itertools.count():
            words = " ".join(f"w{i}" for i in range(number % 7 + 1))
            transcript.event(caption(number // 7, words, words, final=number % 7 == 6))
            print(number, flush=True)
        """
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT) as child:
        assert child.stdout
        for line in child.stdout:
            if int(line) >= 150:
                break
        running = is_running(session_files(tmp_path)[0])
        child.kill()
        said = max([int(line) for line in child.stdout], default=150)
    assert running
    path, found = newest(tmp_path, print)
    assert not is_running(path)
    assert not found.ended
    assert found.damaged_lines <= 1
    assert sum(len(u.target.split()) for u in found.utterances) >= said + 1
    assert all(u.final for u in found.utterances[:-1])


def test_a_failing_disk_is_said_while_it_lasts_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = recorded(tmp_path, caption(0, "Eins", "One", final=True))
    real = os.write
    monkeypatch.setattr("app.files.os.write", lambda fd, data: _full(fd, data, real))
    with pytest.raises(TranscriptProblem, match=r"no space left on device.*kept in memory"):
        transcript.event(caption(1, "Zwei", "Two", final=True))
    for event in (caption(2, "Drei", "Three", final=True), Activity(1.0, 1.0, True, 0.5)):
        with pytest.raises(TranscriptProblem):
            transcript.event(event)
    assert transcript.problem
    record = transcript.record()
    assert record
    assert [u.target for u in record.utterances] == ["Eins", "Zwei", "Drei"]
    monkeypatch.setattr("app.files.os.write", real)
    transcript.event(caption(3, "Vier", "Four", final=True))
    assert transcript.problem is None
    transcript.event(ENDED)
    found = read_session(journal(transcript))
    assert [u.target for u in found.utterances] == ["Eins", "Zwei", "Drei", "Vier"]
    assert found.damaged_lines == 0


def _full(fd: int, data: bytes, write: object) -> int:
    """A disk that takes a few bytes and is then full."""
    if len(data) > 40:
        return write(fd, bytes(data[:7]))  # type: ignore[operator, no-any-return]
    raise OSError(28, "No space left on device")


def test_a_folder_that_cannot_be_written_is_said_at_start_and_at_the_end(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    transcript = Transcript(blocked / "sessions")
    with pytest.raises(TranscriptProblem, match="cannot be written"):
        transcript.event(BEGAN)
    with pytest.raises(TranscriptProblem):
        transcript.event(caption(0, "Eins", "One", final=True))
    with pytest.raises(TranscriptProblem, match="incomplete"):
        transcript.event(ENDED)
    record = transcript.record()
    assert record
    assert record.utterances[0].target == "Eins"


def test_a_session_whose_engine_died_has_an_end(tmp_path: Path) -> None:
    transcript = recorded(tmp_path, caption(0, "Eins", "One"), SessionEnded(BEGAN.session_id, 3.0, 3.0, "It died."))
    found = read_session(journal(transcript))
    assert found.ended
    assert not found.utterances[0].final


def test_a_second_session_gets_a_second_journal(tmp_path: Path) -> None:
    transcript = recorded(tmp_path, caption(0, "Eins", "One"), ENDED)
    transcript.event(replace(BEGAN, session_id="ffffffff-1", began_unix_s=BEGAN.began_unix_s + 60))
    transcript.event(caption(0, "Zwei", "Two"))
    transcript.close()
    texts = [read_session(path).utterances[0].target for path in session_files(tmp_path)]
    assert texts == ["Zwei", "Eins"]


def test_find_and_delete(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="no sessions"):
        newest(tmp_path, print)
    first = journal(recorded(tmp_path, ENDED))
    second = Transcript(tmp_path)
    second.event(replace(BEGAN, session_id="0affffff", began_unix_s=BEGAN.began_unix_s + 90))
    assert newest(tmp_path, print)[0] == second.path
    assert find_session(tmp_path, "0a1b") == first
    assert find_session(tmp_path, first.stem) == first
    with pytest.raises(TranscriptError, match="fits 2 sessions"):
        find_session(tmp_path, "0a")
    for name in ("zz", ""):
        with pytest.raises(TranscriptError, match="no session"):
            find_session(tmp_path, name)
    with pytest.raises(TranscriptError, match="still running"):
        delete_session(journal(second))
    second.close()
    delete_session(journal(second))
    assert session_files(tmp_path) == [first]
    with pytest.raises(TranscriptError, match="cannot be deleted"):
        delete_session(tmp_path / "none.jsonl")
    with pytest.raises(TranscriptError, match="cannot be read"):
        read_session(tmp_path / "none.jsonl")


def test_times_that_are_no_numbers_do_no_harm(tmp_path: Path) -> None:
    transcript = recorded(
        tmp_path, caption(0, "Eins", "One", start_s=float("nan"), end_s=float("inf"), final=True), ENDED
    )
    found = read_session(journal(transcript))
    assert (found.utterances[0].start_s, found.utterances[0].end_s) == (0.0, 0.0)


def test_an_interrupted_session_is_offered_and_recovered(tmp_path: Path) -> None:
    transcript = recorded(tmp_path, caption(0, "Eins", "One", final=True), caption(1, "Zw", "Tw", end_s=7.5))
    path = journal(transcript)
    assert summarise(path).state == "running"
    assert interrupted_sessions(tmp_path) == []
    cut = path.read_bytes()[:-9]
    transcript.close()
    path.write_bytes(cut)
    (found,) = interrupted_sessions(tmp_path)
    assert (found.path, found.state, found.title, found.target_lang) == (path, "cut off", "talk.wav", "de")
    assert found.has_text
    recover_session(path)
    assert interrupted_sessions(tmp_path) == []
    whole = read_session(path)
    assert whole.ended
    assert whole.damaged_lines == 1, "the half line is still there, and nothing else is lost"
    assert [u.target for u in whole.utterances] == ["Eins"]
    assert summarise(path).state == ""


def test_a_session_of_a_newer_version_is_not_offered(tmp_path: Path) -> None:
    transcript = recorded(tmp_path, caption(0, "Eins", "One", final=True))
    begun = journal(transcript).read_text()
    transcript.close()
    journal(transcript).write_text(begun.replace('"schema_version": 1', '"schema_version": 2', 1))
    assert summarise(journal(transcript)).state == "of a newer version"
    assert interrupted_sessions(tmp_path) == []


def test_a_session_without_a_word_is_not_offered(tmp_path: Path) -> None:
    transcript = recorded(tmp_path)
    head = journal(transcript).read_bytes()
    transcript.close()
    journal(transcript).write_bytes(head)
    assert summarise(journal(transcript)).state == "cut off"
    assert interrupted_sessions(tmp_path) == []


def test_bookmarks_are_kept_in_the_running_and_in_the_finished_session(tmp_path: Path) -> None:
    rows: list[dict] = []
    transcript = recorded(tmp_path, caption(0, "Eins", "One", final=True))
    transcript.rows.subscribe(rows.append)
    transcript.bookmark(0, True)
    assert rows == [{"type": "bookmark", "utterance_id": 0, "on": True}]
    with pytest.raises(TranscriptError, match="being recorded by another"):
        bookmark_session(journal(transcript), 1, True)
    transcript.event(ENDED)
    transcript.bookmark(5, True)
    assert read_session(journal(transcript)).bookmarks == (0,), "what comes after the end is not written here …"
    bookmark_session(journal(transcript), 3, True)
    bookmark_session(journal(transcript), 0, False)
    assert read_session(journal(transcript)).bookmarks == (3,), "… but into the file"
    assert read_session(journal(transcript)).ended


@pytest.mark.parametrize("text", ["", "{", "[]\n", '{"type": "session"}\n', "\xff\n"])
def test_a_damaged_journal_is_summarised_as_that(text: str, tmp_path: Path) -> None:
    path = tmp_path / "20240101-000000-aaaa.jsonl"
    path.write_bytes(text.encode("latin-1"))
    assert summarise(path).state == "damaged"
    assert interrupted_sessions(tmp_path) == []


def test_a_journal_that_cannot_be_changed_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="cannot be changed"):
        bookmark_session(tmp_path / "none.jsonl", 0, True)
