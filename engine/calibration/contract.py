"""What calibration asks of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.mt.contract import Source


class TeacherForced(Protocol):
    """A translator that can read a given target and report every head."""

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """(layer, head)s, in the order of `teacher_force`."""
        ...

    @property
    def geometry(self) -> tuple[int, int]:
        """(layers, query heads of a layer)."""
        ...

    @property
    def layout_id(self) -> str: ...

    @property
    def architecture(self) -> str: ...

    def encode_target(self, text: str) -> list[int]: ...

    def pieces(self, ids: Sequence[int]) -> tuple[bytes, ...]: ...

    def teacher_force(self, source: Source, target_ids: Sequence[int], query_row: str) -> NDArray[np.float32]: ...
