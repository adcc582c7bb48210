"""What transformers names when it is imported."""

from enum import Enum
from typing import Any


class ImageReadMode(Enum):
    """How an image's channels would be read."""

    UNCHANGED = 0
    GRAY = 1
    RGB = 3


def decode_image(*_: Any, **__: Any) -> Any:
    """There are no images in these tests."""
    raise NotImplementedError("this torchvision stands in for the real one")
