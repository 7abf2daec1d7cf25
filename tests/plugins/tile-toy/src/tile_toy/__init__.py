"""A third-party backend of the tile language, complete and small."""
