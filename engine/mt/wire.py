"""Numbers of the MT server protocol that both ends keep to."""

from __future__ import annotations

PROTOCOL_VERSION = 1
DEFAULT_PORT = 8765

MAX_FRAME_BYTES = 1 << 20
MAX_WORDS = 4000  # of an update, tail apart
MAX_WORD_CHARS = 200
MAX_TEXT_CHARS = 8000  # of a context, an accepted prefix, one side of a history pair
MAX_HISTORY = 64
