"""Caches of sessions: what a prompt shares with an earlier one is used again, and nothing else."""

# ruff: noqa: E402 - what needs torch comes behind the skip
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from engine.mt.hf_cache import CachedText, SessionCaches


def feed(text: CachedText, ids: list[int]) -> None:
    """As a model would: keys that carry their token, in two layers of which the first one shares its keys elsewhere."""
    new = ids[len(text.ids) :]
    states = torch.tensor(new, dtype=torch.float32).reshape(1, 1, -1, 1)
    for layer in (0, 1):
        text.cache.update(states, states, layer)
    text.ids += new


def held(text: CachedText) -> list[int]:
    keys = [layer.keys.flatten().tolist() for layer in text.cache.layers]
    assert keys[0] == keys[1]
    return [int(key) for key in keys[0]]


def test_a_prompt_keeps_what_it_shares_with_the_last_one() -> None:
    caches = SessionCaches()
    feed(caches.take("a", [1, 2, 3, 4]), [1, 2, 3, 4, 5])
    text = caches.take("a", [1, 2, 9, 4])
    assert text.ids == held(text) == [1, 2]


def test_the_last_tokens_are_always_left_to_decode() -> None:
    caches = SessionCaches()
    feed(caches.take("a", [1, 2, 3]), [1, 2, 3])
    assert caches.take("a", [1, 2, 3]).ids == [1, 2]
    assert caches.take("a", [1, 2, 3], decode=3).ids == []


def test_a_new_session_starts_from_another_ones_text() -> None:
    caches = SessionCaches()
    first = caches.take("a", [1, 2, 3, 4])
    feed(first, [1, 2, 3, 4])
    second = caches.take("b", [1, 2, 3, 7])
    assert held(second) == [1, 2, 3]
    feed(second, [1, 2, 3, 7, 8])
    assert held(first) == [1, 2, 3, 4]
    assert held(second) == [1, 2, 3, 7, 8]


def test_the_session_unused_for_longest_goes_first() -> None:
    caches = SessionCaches(limit=2)
    for name, ids in (("a", [1, 2]), ("b", [3, 4]), ("a", [1, 2]), ("c", [5, 6])):
        feed(caches.take(name, ids), ids)
    assert caches.take("a", [1, 2, 3]).ids == [1, 2]
    assert caches.take("b", [3, 4, 5]).ids == []


def test_a_dropped_session_is_forgotten() -> None:
    caches = SessionCaches()
    feed(caches.take("a", [1, 2]), [1, 2])
    caches.drop("a")
    caches.drop("never seen")
    assert caches.take("a", [1, 2, 3]).ids == []
