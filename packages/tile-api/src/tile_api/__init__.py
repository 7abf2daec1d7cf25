"""What users of the tile language import."""
