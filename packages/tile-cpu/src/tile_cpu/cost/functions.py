"""Cycles of functions on one vector: polynomials of `tile_cpu.math`, and slow instructions."""

from __future__ import annotations

from types import MappingProxyType

FUNCTION_CYCLES = MappingProxyType(
    {
        # Measured on Zen 4 with 16 float32 in the first-level cache, less a load and a store.
        "exp2": 14.0,
        "exp": 16.0,
        "log2": 17.0,
        "log": 17.0,
        "tanh": 24.0,
        "sigmoid": 22.0,
        "erf": 28.0,
        "sqrt": 10.0,
        "rsqrt": 18.0,
        "pow": 45.0,
    }
)
OTHER_FUNCTION = 30.0
QUOTIENT_CYCLES = 9.0
"""A division of 16 float32: Zen 4 and Ice Lake take 8 to 10 cycles before the next can begin."""
