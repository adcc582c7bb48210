"""Where a draft may be cut: at whole words, or at whole grapheme clusters in scripts that write no spaces."""

from __future__ import annotations

from collections.abc import Sequence

import regex

_SPACELESS = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}。、！？，；：「」『』（）《》〈〉・…]"
)
_CLUSTER = regex.compile(r"\X")
_CLOSING_MARKS = ".!?…。！？"
_AFTER_MARK = "\"'”’“»)]」』）"


def word_starts(pieces: Sequence[bytes]) -> list[int]:
    """Token indices at which a new word begins (a grapheme cluster, in scripts without spaces). The first token counts
    as a start unless it continues a word of the prefill, which shows in its lacking space; callers that need the
    difference look at the piece."""
    offsets, text = _layout(pieces)
    starts = [0] if pieces else []
    for at in range(1, len(pieces)):
        position = offsets[at]
        if position is None or position >= len(text):
            continue
        if text[position].isspace() or _is_spaceless_edge(text, position):
            starts.append(at)
    return starts


def safe_cuts(pieces: Sequence[bytes], finish: str) -> tuple[int, ...]:
    """For every limit from 0 to all tokens, the largest token count within it at which the draft may be cut.

    At the end of a draft that stopped by itself the last word is complete, but its sentence mark is not trusted while
    the utterance is open: the model writes "." because the source ends there for the moment.
    """
    offsets, text = _layout(pieces)
    clusters = _cluster_edges(text)
    cuts = [0]
    for at in range(1, len(pieces) + 1):
        position = offsets[at]
        whole = position is not None and position in clusters and _may_cut(text, position, finish)
        cuts.append(at if whole else cuts[-1])
    return tuple(cuts)


def _may_cut(text: str, position: int, finish: str) -> bool:
    if not text[:position].strip():
        return False
    before = text[:position].rstrip().rstrip(_AFTER_MARK)
    rest = text[position:]
    if not rest.strip().strip(_CLOSING_MARKS + _AFTER_MARK) and before.endswith(tuple(_CLOSING_MARKS)):
        return False  # the draft's closing sentence mark
    if not rest:
        return finish == "stop"
    if rest[0].isspace() or _is_spaceless_edge(text, position):
        return True
    # the word before a closing sentence mark: complete, and the mark stays held
    return finish == "stop" and not rest.strip().strip(_CLOSING_MARKS + _AFTER_MARK)


def _is_spaceless_edge(text: str, position: int) -> bool:
    return bool(_SPACELESS.match(text[position]) or _SPACELESS.match(text[position - 1]))


def _layout(pieces: Sequence[bytes]) -> tuple[list[int | None], str]:
    """Character offset before each token (None inside a character) and the text of all pieces."""
    data = b"".join(pieces)
    text = data.decode("utf-8", errors="ignore")
    offsets: list[int | None] = []
    position = 0
    for piece in (*pieces, b""):
        try:
            offsets.append(len(data[:position].decode("utf-8")))
        except UnicodeDecodeError:
            offsets.append(None)
        position += len(piece)
    return offsets, text


def _cluster_edges(text: str) -> set[int]:
    edges = {match.end() for match in _CLUSTER.finditer(text)}
    edges.add(0)
    return edges
