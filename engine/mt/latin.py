"""Which tokens of a vocabulary can occur in text of languages in Latin script."""

from __future__ import annotations

from collections.abc import Sequence

import regex

_LATIN = regex.compile(r"[\p{Latin}\p{Common}\p{Inherited}]+")


def latin_tokens(pieces: Sequence[bytes]) -> list[int]:
    """Ids of the tokens that languages in Latin script are written with.

    Their letters are Latin, whatever marks, figures and signs stand beside them. Parts of characters and control
    tokens (no bytes) count as such.
    """
    return [token for token, piece in enumerate(pieces) if _is_latin(piece)]


def _is_latin(piece: bytes) -> bool:
    try:
        text = piece.decode()
    except UnicodeDecodeError:
        return True
    return not text or _LATIN.fullmatch(text) is not None
