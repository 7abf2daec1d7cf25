"""The CUDA backend of the tile language."""

__author__ = "The tile authors"
__version__ = "0.1.0"
