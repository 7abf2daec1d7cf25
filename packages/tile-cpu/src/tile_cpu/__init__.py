"""The x86 CPU backend of the tile language."""
