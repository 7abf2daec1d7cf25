"""What the families of functions share: clamping, scaling by powers of two, doing it in double."""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.tir.nodes import PrimExpr

NAN = math.nan
INF = math.inf
LN2 = math.log(2.0)
# Adding it to |x| < 2**22 (2**51) leaves the rounded x in the low bits of the sum.
ROUNDER_SINGLE = 1.5 * 2.0**23
ROUNDER_DOUBLE = 1.5 * 2.0**52
BIAS = 127  # of the exponents of floats in single

# Names a value so that it is computed once: `tile_cpu.tir.build.Temporaries` does.
Keep = Callable[[PrimExpr], PrimExpr]


def clamp(x: Value, low: float, high: float) -> Value:
    """Return `x` limited to [low, high]; NaN stays NaN."""
    x = x.gt(high).where(high, x)
    return x.lt(low).where(low, x)


def keep_zero(x: Value, result: Value) -> Value:
    """Return `result`, but `x` itself where that is a zero: odd functions keep its sign."""
    return x.eq(0.0).where(x, result)


def in_double(fn: Function, body: Callable[..., Value], *args: Value) -> Value:
    """Compute ``body(fn, *args)`` in double and round to single once."""
    return body(fn, *(a.to("double") for a in args)).to("float")


def library(name: str) -> Callable[..., Value]:
    """Return a function that calls the C library's `name`, lane after lane."""

    def run(fn: Function, *args: Value) -> Value:
        return fn.each_lane(lambda *xs: fn.outside(name, *xs), *args)

    return run


def rounder(fn: Function, kind: Type, more: int = 0) -> Value:
    """Return the constant that rounds what it is added to, and adds `more` to the low bits."""
    return fn.constant((ROUNDER_SINGLE if kind.bits == 32 else ROUNDER_DOUBLE) + more, kind)


def nearest(fn: Function, x: Value, factor: float = 1.0, more: int = 0) -> tuple[Value, Value]:
    """Return ``round(x * factor)`` as a float, and `more` than it as an integer.

    Of the integer only the low bits count.
    """
    magic = rounder(fn, x.type, more)
    shifted = fn.mad(x, factor, magic) if factor != 1.0 else x + magic
    return shifted - magic, shifted.bits()


def nearest_to_scale(fn: Function, x: Value, factor: float = 1.0) -> tuple[Value, Value]:
    """Return ``n = round(x * factor)`` in single, and what `scale` takes for ``2**n``.

    That is twice the bias of exponents more, of which halves have it once.
    """
    return nearest(fn, x, factor, more=2 * BIAS)


def nearest_power(
    fn: Function, x: Value, factor: float = 1.0, more: int = 0
) -> tuple[Value, Value]:
    """Return ``n = round(x * factor)`` in single, and ``2**(n + more)``, if that is normal."""
    n, shifted = nearest(fn, x, factor, more=BIAS + more)
    return n, shifted.shl(23).bitcast(x.type)


def power_of_two(fn: Function, exponent: Value, scalar: str) -> Value:
    """Return ``2**exponent`` for an integer exponent in the normal range of `scalar`."""
    mantissa, bias = (23, 127) if scalar == "float" else (52, 1023)
    return (exponent + bias).shl(mantissa).bitcast(exponent.type.of(scalar))


def scale(fn: Function, x: Value, n: Value, shifted: Value) -> Value:
    """Return ``x * 2**n`` in single, rounding once where that is denormal.

    `n` is a whole number in -200..256, and `shifted` what `nearest_to_scale` returned with it.
    """
    if has_scale(fn, x.type):
        return scale_by(fn, x, n)
    half = shifted.lshr(1)
    first, second = (e.shl(23).bitcast(x.type) for e in (half, shifted - half))
    return x * first * second


def has_scale(fn: Function, kind: Type) -> bool:
    """Whether one instruction scales `kind` by powers of two."""
    if kind.lanes in (4, 8):
        return fn.machine.has("avx512f", "avx512vl")
    return kind.lanes == 16 and fn.machine.has("avx512f")


def scale_by(fn: Function, x: Value, n: Value) -> Value:
    """Return ``x * 2**n`` for whole `n` of any size, where `has_scale`.

    If `n` is infinite and `x` is NaN, the result is inf or 0 like that of any other `x`.
    """
    lanes, kind = x.type.lanes, x.type
    zero = fn.constant(0.0, kind)
    name = f"llvm.x86.avx512.mask.scalef.ps.{32 * lanes}"
    rest = ("i16 -1", "i32 4") if lanes == 16 else ("i8 -1",)
    return fn.call(name, kind, x, n, zero, *rest)
