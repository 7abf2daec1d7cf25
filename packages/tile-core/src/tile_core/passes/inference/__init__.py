"""Layout inference: who holds each element of a tile, and who runs each iteration of a loop."""
