"""Holds no function: whoever calls one is told by an AttributeError."""
