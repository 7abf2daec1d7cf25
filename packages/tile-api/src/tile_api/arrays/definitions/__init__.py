"""What models are made of, each defined by a program of NumPy's words: `tile.nn`."""
