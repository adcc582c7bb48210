from __future__ import annotations

import logging

import numpy as np
import pytest

from engine.mt import drafting
from engine.mt.contract import CaptureHealth, Source
from engine.mt.drafting import Generated, as_draft, next_token, no_draft, prepare
from engine.mt.prompt import FewShotLayout, Prompt, Tokens

PIECES = (b"", b" Haus", b".", b".\n", b"\n\n", b" \n", b"?!\n", b"\xc3", b" ", b"\n")
END = 0


class Vocabulary:
    """Token ids count `PIECES`; only a piece itself is one token."""

    def encode(self, text: str) -> list[int]:
        raw = text.encode()
        return [PIECES.index(raw)] if raw in PIECES[1:] else [1] * len(raw)

    def piece(self, token: int, control: bool = False) -> bytes:
        return PIECES[token]

    def ends_text(self, token: int) -> bool:
        return token == END


def letters(prompt: Prompt) -> Tokens:
    raw = prompt.text.encode()
    return Tokens(list(raw), [(at, at + 1) for at in range(len(raw))])


@pytest.mark.parametrize(
    ("best", "expected"),
    [
        (END, (None, True)),
        (1, (1, False)),
        (2, (2, False)),
        (3, (2, True)),  # ".\n": the full stop is kept
        (4, (None, True)),
        (5, (None, True)),
        (6, (None, True)),  # "?!" is two tokens, so no one row would be its own
        (7, (7, False)),  # part of a character
        (8, (8, False)),
        (9, (None, True)),
    ],
)
def test_where_an_answer_ends(best: int, expected: tuple[int | None, bool]) -> None:
    assert next_token(Vocabulary(), best, ("\n",)) == expected


def test_bad_rows_are_counted_and_the_first_is_an_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafting, "_reported", type(drafting._reported)())
    source = Source(("Ein", "Haus"), "de", "en")
    prepared = prepare(FewShotLayout(), source, letters, 10_000, 10_000)
    positions = len(prepared.ids)
    good = np.full((2, positions), 1 / positions, np.float32)
    made = Generated([1, 2, 1], [good, None, np.full_like(good, np.nan)], "stop")
    health = CaptureHealth(mode="test")
    with caplog.at_level(logging.ERROR, "surtitle.mt"):
        drafts = [as_draft(Vocabulary(), prepared, (7,), 2, made, 2, health) for _ in range(2)]
    assert drafts[0].missing.tolist() == [False, True, False]
    assert np.isfinite(drafts[0].rows).all(axis=1).tolist() == [True, False, False]
    assert drafts[0].text == " Haus. Haus"
    assert (health.rows_expected, health.rows_missing, health.rows_nonfinite) == (6, 2, 2)
    assert len(caplog.records) == 1


def test_no_draft() -> None:
    made = no_draft(Source(("a", "b"), "en", "de"), [3, 4])
    assert (made.prefill_ids, made.finish, made.rows.shape) == ((3, 4), "cancelled", (0, 2))
