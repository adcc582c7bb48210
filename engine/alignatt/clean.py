"""What a draft may never show: control tokens (also half-finished ones), line breaks into a next turn, and loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import regex

from engine.alignatt.draft import Draft

# Markers that models write as plain text. A draft ends where one begins.
_MARKER = regex.compile(
    r"</?(?:start_of_turn|end_of_turn|start_of_image|end_of_image|eos|bos|pad|unk|s|think|thought|answer|tool_call)"
    r"(?:\s[^<>]*)?>|<\|[^<>|]*\|>|<unused\d+>|<channel\||\n"
)
_MARKER_STARTS = (
    *(
        "<start_of_turn>",
        "<end_of_turn>",
        "<start_of_image>",
        "<end_of_image>",
        "<eos>",
        "<bos>",
        "<pad>",
        "<unk>",
    ),
    *(
        "<s>",
        "</s>",
        "<think>",
        "</think>",
        "<thought>",
        "<answer>",
        "</answer>",
        "<tool_call>",
        "<unused",
        "<channel|",
    ),
)
_HALF_OPEN = regex.compile(r"<\|[^<>|]*$|<unused\d*$")
_NOTE = regex.compile(
    r"(?:^|(?<=[.!?…]))\s*\(?(?:Note|Hinweis|Anmerkung|Nota|Remarque|Translation)\s*:", regex.IGNORECASE
)
MAX_NGRAM = 8
_FIGURES = regex.compile(r"[\d.,'’\s]*\d[\d.,'’\s]*")
NUMBER_TOKENS = 20  # a number may repeat its digits: many models spell them one by one, and a trillion takes 17 tokens


def clean(draft: Draft, source_units: Sequence[str], released: Sequence[bytes] = ()) -> Draft:
    """The draft up to the first thing that may not be shown. Idempotent; returns the draft itself when it is clean.

    Only new tokens are cut: `released`, the pieces in front of the draft, only shows a loop that began there. A draft
    cut at a finished marker, note or loop has stopped (finish "stop"); one cut at a half-finished marker keeps its
    finish, since more text may make it plain.
    """
    keep, finish = len(draft.pieces), draft.finish
    data = b"".join(draft.pieces)
    text = data.decode("utf-8", errors="replace")
    found = _MARKER.search(text) or _unsourced_note(text, source_units)
    if found:
        keep, finish = _tokens_before(draft.pieces, len(text[: found.start()].encode())), "stop"
    elif (half := _half_marker(text)) is not None:
        keep = _tokens_before(draft.pieces, len(text[:half].encode()))
    before = released[-MAX_NGRAM * 4 :]
    looped = _before_loop([*before, *draft.pieces[:keep]], _longest_refrain(source_units)) - len(before)
    looped = max(0, looped)
    if looped < keep:
        keep, finish = looped, "stop"
    return draft if keep == len(draft.pieces) else trim(draft, keep, finish)


def trim(draft: Draft, tokens: int, finish: str) -> Draft:
    """The first `tokens` tokens of a draft, with another finish."""
    return replace(
        draft,
        token_ids=draft.token_ids[:tokens],
        pieces=draft.pieces[:tokens],
        rows=draft.rows[:tokens],
        prompt=draft.prompt[:tokens],
        suffix=draft.suffix[:tokens],
        missing=draft.missing[:tokens],
        finish=finish,
    )


def _tokens_before(pieces: Sequence[bytes], byte: int) -> int:
    """How many whole tokens lie before a byte position."""
    position = 0
    for at, piece in enumerate(pieces):
        position += len(piece)
        if position > byte:
            return at
    return len(pieces)


def _half_marker(text: str) -> int | None:
    """Where a marker begins that the end of the text leaves unfinished."""
    if half := _HALF_OPEN.search(text):
        return int(half.start())
    at = text.rfind("<")
    if at >= 0 and any(marker.startswith(text[at:]) for marker in _MARKER_STARTS):
        return at
    return None


def _unsourced_note(text: str, source_units: Sequence[str]) -> regex.Match[str] | None:
    """A remark of the model about its translation; kept when the speaker says "note" or the like."""
    found = _NOTE.search(text)
    if found is None or any(unit.rstrip(":").lower() in {"note", "translation", "notice"} for unit in source_units):
        return None
    return found


def _before_loop(pieces: Sequence[bytes], refrain: int) -> int:
    """Tokens up to the point where an n-gram has been said more often in a row than speech explains.

    `refrain`: the longest immediate repetition in the source; the target may repeat one time more than that, and any
    n-gram may stand three times. The digits of a number are no loop before it is longer than numbers are.
    """
    allowed = max(3, refrain + 1)
    for size in range(1, MAX_NGRAM + 1):
        run = 0  # tokens that equal the token `size` places earlier, in a row
        for at in range(size, len(pieces)):
            run = run + 1 if pieces[at] == pieces[at - size] else 0
            if run < size * allowed:
                continue
            if run >= NUMBER_TOKENS or not _FIGURES.fullmatch(_text(pieces[at + 1 - size : at + 1])):
                return at + 1 - size
    return len(pieces)


def _text(pieces: Sequence[bytes]) -> str:
    return b"".join(pieces).decode("utf-8", errors="replace")


def _longest_refrain(units: Sequence[str]) -> int:
    """How often the source repeats an n-gram of units in a row (1 = not at all)."""
    words = [regex.sub(r"\W+", "", unit).casefold() for unit in units]
    longest = 1
    for size in range(1, MAX_NGRAM + 1):
        run = 0
        for at in range(size, len(words)):
            run = run + 1 if words[at] and words[at] == words[at - size] else 0
            longest = max(longest, 1 + run // size)
    return longest
