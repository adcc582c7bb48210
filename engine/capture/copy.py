"""The tap's write, in arrays: values of tokens that have a KV-cache slot go to that slot, all others nowhere.

A batch that runs in a CUDA graph is padded to a captured size. Padding rows hold whatever was in memory (often NaN),
and their positions are stale; the one thing that the engine rewrites for them at each step is their slot, -1.
So the slot decides, and nothing else does: see LIMITATIONS.md, "Positions".
"""

from __future__ import annotations

from typing import Any


def copy_by_slot(values: Any, slots: Any, shadow: Any) -> None:
    """`shadow[slot] = values[token]` where `slot >= 0`. Works on numpy arrays and on torch tensors alike.

    `values`: [tokens, ...], `slots`: whole numbers [tokens or more], `shadow`: [slots, ...].
    """
    tokens = min(len(values), len(slots))
    slots = slots[:tokens]
    real = slots >= 0
    shadow[slots[real]] = values[:tokens][real]
