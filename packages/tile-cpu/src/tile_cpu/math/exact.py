"""Exact functions: bits, whole numbers, magnitudes, neighbours, extrema."""

from __future__ import annotations

from collections.abc import Callable

from tile_cpu.llvm.builder import Function, Value


def _counted(value: Value) -> Value:
    return value.to("i32", signed=False)


def popcount(fn: Function, x: Value) -> Value:
    """Return how many bits are set, as int32."""
    return _counted(fn.unary("ctpop", x))


def clz(fn: Function, x: Value) -> Value:
    """Return how many zeros precede the first set bit, as int32; all bits for 0."""
    return _counted(fn.call(f"llvm.ctlz.{x.type.suffix}", x.type, x, "i1 false"))


def ffs(fn: Function, x: Value) -> Value:
    """Return one plus the position of the lowest set bit, as int32; 0 for 0."""
    position = _counted(fn.call(f"llvm.cttz.{x.type.suffix}", x.type, x, "i1 false"))
    return x.eq(0).where(0, position + 1)


def dp4a(fn: Function, a: Value, b: Value, c: Value) -> Value:
    """Return ``c`` plus the dot product of the four signed bytes of `a` and of `b`."""
    for shift in (24, 16, 8, 0):
        c = c + a.shl(shift).ashr(24) * b.shl(shift).ashr(24)
    return c


def native(name: str) -> Callable[[Function, Value], Value]:
    """Return the function that calls ``llvm.<name>``."""
    return lambda fn, x: fn.unary(name, x)


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


def extremum(better: Callable[[Value, Value], Value]) -> Callable[..., Value]:
    """Return the function that picks the first value where it is `better`; a NaN loses."""

    def run(fn: Function, x: Value, y: Value) -> Value:
        picked = better(x, y).where(x, y)
        return y.is_nan().where(x, picked) if x.type.is_float else picked

    return run


def extremum_or_nan(name: str) -> Callable[..., Value]:
    """Return the function ``llvm.<name>`` of two floats: a NaN wins, zeros are equal."""

    def run(fn: Function, x: Value, y: Value) -> Value:
        operands = f"{x.type} {x.text}, {y.type} {y.text}"
        return fn.emit(f"call nsz {x.type} @llvm.{name}.{x.type.suffix}({operands})", x.type)

    return run


maximum, minimum = extremum(Value.gt), extremum(Value.lt)
maximum_unsigned, minimum_unsigned = extremum(Value.ugt), extremum(Value.ult)
maximum_or_nan, minimum_or_nan = extremum_or_nan("maximum"), extremum_or_nan("minimum")
