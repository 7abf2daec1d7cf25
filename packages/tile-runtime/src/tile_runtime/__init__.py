"""Loads and launches compiled tile kernels, with nothing but NumPy and a driver."""
