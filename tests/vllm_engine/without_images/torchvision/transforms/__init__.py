"""What transformers names when it is imported."""

from enum import Enum


class InterpolationMode(Enum):
    """The modes by name."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"
