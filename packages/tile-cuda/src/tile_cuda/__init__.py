"""The CUDA backend of the tile language."""
