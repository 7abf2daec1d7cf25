"""Cycles of functions on one vector: polynomials of `tile_cpu.math`, and slow instructions."""

from __future__ import annotations

from types import MappingProxyType

FUNCTION_CYCLES = MappingProxyType(
    {
        # Measured on Zen 4 with 16 float32 from the second-level cache, less what a
        # multiplication takes there; tanh and sigmoid on Zen 5, in proportion to erf.
        "exp2": 4.0,
        "exp": 7.0,
        "exp10": 10.0,
        "log2": 19.0,
        "log": 19.0,
        "tanh": 10.0,
        "sigmoid": 12.0,
        "erf": 8.0,
        "sqrt": 6.0,
        "rsqrt": 12.0,
        "sin": 27.0,
        "cos": 27.0,
        "fmod": 24.0,
        "hypot": 28.0,
        "pow": 100.0,
    }
)
OTHER_FUNCTION = 50.0
QUOTIENT_CYCLES = 5.0
"""A division of vectors: it overlaps with what does not need it."""
