"""Stands in for torchvision in the tests: vLLM's speech models import its image functions and never call them.

The builds of torchvision on PyPI load beside a CUDA build of torch only.
"""

__version__ = "0.0"
