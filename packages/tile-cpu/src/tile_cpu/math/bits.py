"""What the bits tell: how many are set, products of bytes, and which floats are numbers."""

from __future__ import annotations

from tile_cpu.llvm.builder import Function, Value

# Floats are told apart by their bits: no assumption about floats can fold that away.
_INFINITE = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF0000000000000}


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
    del fn
    for shift in (24, 16, 8, 0):
        c = c + a.shl(shift).ashr(24) * b.shl(shift).ashr(24)
    return c


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
