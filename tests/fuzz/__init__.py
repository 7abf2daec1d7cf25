"""Random programs, what they mean in NumPy, and a comparison of all targets with that."""
