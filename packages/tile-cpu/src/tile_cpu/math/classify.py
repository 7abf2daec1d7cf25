"""isnan, isinf, isfinite by the bits: no assumption about floats can fold them away."""

from __future__ import annotations

from tile_cpu.llvm.builder import Function, Value

_INFINITE = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}


def isnan(fn: Function, x: Value) -> Value:
    """Tell where `x` is NaN."""
    del fn
    return x.is_nan()


def isinf(fn: Function, x: Value) -> Value:
    """Tell where `x` is infinite."""
    del fn
    return x.magnitude().eq(_INFINITE[x.type.bits])


def isfinite(fn: Function, x: Value) -> Value:
    """Tell where `x` is neither infinite nor NaN."""
    del fn
    return x.magnitude().ult(_INFINITE[x.type.bits])
