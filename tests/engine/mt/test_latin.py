from __future__ import annotations

from engine.mt.latin import latin_tokens


def test_latin_tokens() -> None:
    pieces = [
        "Brücke".encode(),
        " l'été".encode(),
        "日本".encode(),
        b"",
        b"\xe6\x97",
        "мост".encode(),
        b" 42 \xe2\x82\xac!",
    ]
    assert latin_tokens(pieces) == [0, 1, 3, 4, 6]
