"""The mailbox: newest partial wins, finals are never lost and leave in order."""

from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from engine.asr.contract import Utterance
from engine.scheduler import Mailbox, Update


def put(mailbox: Mailbox, utterance_id: int, final: bool = False, tag: int = 0) -> None:
    mailbox.put(Update(Utterance(utterance_id, (), (), final), 0.0, 0.0, tag))


def drain(mailbox: Mailbox) -> list[tuple[int, bool, int]]:
    mailbox.close()
    taken = []
    while (update := mailbox.take()) is not None:
        taken.append((update.utterance.utterance_id, update.utterance.final, update.tag))
    assert mailbox.drained
    return taken


def test_the_newest_partial_wins() -> None:
    mailbox = Mailbox()
    for tag in range(3):
        put(mailbox, 0, tag=tag)
    assert mailbox.superseded == 2
    assert drain(mailbox) == [(0, False, 2)]


def test_a_final_supersedes_partials_of_its_utterance_and_earlier_ones() -> None:
    mailbox = Mailbox()
    put(mailbox, 1)
    put(mailbox, 1, final=True)
    assert mailbox.makes_way(Utterance(0, ()))
    assert not mailbox.makes_way(Utterance(1, ()))  # the same words
    put(mailbox, 1)  # a stale partial must not come back as a next utterance
    put(mailbox, 0)
    assert drain(mailbox) == [(1, True, 0)]


def test_finals_go_first_and_in_order() -> None:
    mailbox = Mailbox()
    put(mailbox, 0, final=True)
    put(mailbox, 1, final=True)
    put(mailbox, 2)
    assert drain(mailbox) == [(0, True, 0), (1, True, 0), (2, False, 0)]


def test_take_times_out() -> None:
    assert Mailbox().take(timeout_s=0.01) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans())))
def test_no_final_is_lost_and_no_partial_follows_its_final(puts: list[tuple[int, bool]]) -> None:
    mailbox = Mailbox()
    for tag, (utterance_id, final) in enumerate(puts):
        put(mailbox, utterance_id, final, tag)
    taken = drain(mailbox)
    assert [tag for _, final, tag in taken if final] == [tag for tag, (_, final) in enumerate(puts) if final]
    closed = max((utterance_id for utterance_id, final in puts if final), default=-1)
    assert all(final or utterance_id > closed for utterance_id, final, _ in taken)


def test_idle_means_that_what_was_taken_is_done_with() -> None:
    mailbox, done = Mailbox(), []

    def translate() -> None:
        while (update := mailbox.take()) is not None:
            done.append(update.tag)

    worker = threading.Thread(target=translate)
    worker.start()
    for tag in range(50):
        put(mailbox, 0, tag=tag)
        mailbox.wait_idle()
        assert done == list(range(tag + 1))
    mailbox.close()
    worker.join()
    mailbox.wait_idle()
