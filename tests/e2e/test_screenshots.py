"""`make screenshots` still finds what it photographs."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QImage

from tests.e2e.screenshots import DIALOG, PICTURES, photograph

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(320)]


def test_every_picture_is_taken(tmp_path: Path) -> None:
    assert photograph(tmp_path) == 0
    images = {name: QImage(str(tmp_path / name)) for name in PICTURES}
    assert (images["presets.png"].width(), images["presets.png"].height()) == DIALOG
    for name, image in images.items():
        colours = {image.pixel(x, y) for x in range(0, image.width(), 3) for y in range(0, image.height(), 3)}
        assert len(colours) > 20, f"{name} is empty"
