"""What TileLang's modules hold and the rest of the project has no other use for."""
