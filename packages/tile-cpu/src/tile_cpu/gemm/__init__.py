"""Register-tiled matrix products as TIR statements."""
