"""Rounding to whole numbers, neighbours, signs, magnitudes, and what NaN does to max and min."""

from __future__ import annotations

from collections.abc import Callable

from tile_cpu.llvm.builder import Function, Value


def native(name: str) -> Callable[[Function, Value], Value]:
    """Return the function that calls ``llvm.<name>``."""
    return lambda fn, x: fn.unary(name, x)


def copysign(fn: Function, x: Value, y: Value) -> Value:
    """Return the magnitude of `x` with the sign of `y`."""
    return fn.copysign(x, y)


def absolute(fn: Function, x: Value) -> Value:
    """Return the magnitude; that of the least signed integer is itself."""
    if x.type.is_float:
        return fn.abs(x)
    return fn.call(f"llvm.abs.{x.type.suffix}", x.type, x, "i1 false")


def nextafter(fn: Function, x: Value, y: Value) -> Value:
    """Return the representable number that follows `x` in the direction of `y`."""
    bits = x.bits()
    away = x.gt(0.0) ^ x.gt(y)  # the magnitude grows
    step = away.where(1, fn.constant(-1, bits.type))
    moved = (bits + step).bitcast(x.type)
    least = (y.sign() | 1).bitcast(x.type)
    result = x.eq(0.0).where(least, moved)
    result = x.eq(y).where(y, result)
    return x.is_nan().where(x, y.is_nan().where(y, result))


def maximum(fn: Function, x: Value, y: Value) -> Value:
    """Return the larger; if one is NaN, the other."""
    del fn
    larger = x.gt(y).where(x, y)
    return y.is_nan().where(x, larger) if x.type.is_float else larger


def minimum(fn: Function, x: Value, y: Value) -> Value:
    """Return the smaller; if one is NaN, the other."""
    del fn
    smaller = x.lt(y).where(x, y)
    return y.is_nan().where(x, smaller) if x.type.is_float else smaller


def maximum_unsigned(fn: Function, x: Value, y: Value) -> Value:
    """Return the larger unsigned integer."""
    del fn
    return x.ugt(y).where(x, y)


def minimum_unsigned(fn: Function, x: Value, y: Value) -> Value:
    """Return the smaller unsigned integer."""
    del fn
    return x.ult(y).where(x, y)


def maximum_or_nan(fn: Function, x: Value, y: Value) -> Value:
    """Return the larger; NaN if either is."""
    del fn
    return x.is_nan().where(x, x.gt(y).where(x, y))


def minimum_or_nan(fn: Function, x: Value, y: Value) -> Value:
    """Return the smaller; NaN if either is."""
    del fn
    return x.is_nan().where(x, x.lt(y).where(x, y))
