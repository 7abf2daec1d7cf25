"""Counting bits, and dot products of bytes."""

from __future__ import annotations

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
    del fn
    for shift in (24, 16, 8, 0):
        c = c + a.shl(shift).ashr(24) * b.shl(shift).ashr(24)
    return c
