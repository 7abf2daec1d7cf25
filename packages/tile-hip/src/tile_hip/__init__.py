"""The HIP backend of the tile language."""
