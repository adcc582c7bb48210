"""Holds a name of a type and no function: whoever calls one is told by an AttributeError."""

from torchvision.transforms import InterpolationMode as InterpolationMode
