"""Square roots and reciprocals: the hardware's, correctly rounded."""

from __future__ import annotations

from tile_cpu.llvm.builder import Function, Value


def sqrt(fn: Function, x: Value) -> Value:
    """Return the square root, correctly rounded."""
    return fn.unary("sqrt", x)


def rsqrt(fn: Function, x: Value) -> Value:
    """Return ``1 / sqrt(x)``."""
    return 1.0 / fn.unary("sqrt", x)


def reciprocal(fn: Function, x: Value) -> Value:
    """Return ``1 / x``, correctly rounded."""
    del fn
    return 1.0 / x


def _hypot_wide(fn: Function, x: Value, y: Value) -> Value:
    return fn.unary("sqrt", fn.mad(x, x, y * y))


def hypot(fn: Function, x: Value, y: Value) -> Value:
    """Return ``sqrt(x*x + y*y)`` without overflow; infinite if either is, even beside NaN."""
    root = _hypot_wide(fn, x.to("double"), y.to("double")).to("float")
    infinite = fn.abs(x).eq(float("inf")) | fn.abs(y).eq(float("inf"))
    return infinite.where(float("inf"), root)
