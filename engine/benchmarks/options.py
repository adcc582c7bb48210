"""Options that several benchmarks take."""

from __future__ import annotations

import json
from typing import Any


def key_and_value(text: str) -> tuple[str, Any]:
    """A preset's key and value as the command line gives them: JSON, else text. Raises `ValueError`."""
    key, mark, value = text.partition("=")
    if not mark:
        raise ValueError(f"'{text}' is not KEY=VALUE.")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value
