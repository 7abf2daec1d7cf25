"""pow through log and exp in double; ldexp; fmod; hypot."""

from __future__ import annotations

from tile_cpu.llvm.builder import Function, Value
from tile_cpu.math.common import INF, NAN, clamp, power_of_two
from tile_cpu.math.exponential import exp_wide
from tile_cpu.math.logarithm import log_wide


def _is_whole(fn: Function, y: Value) -> Value:
    return fn.unary("trunc", y).eq(y)


def pow(fn: Function, x: Value, y: Value) -> Value:
    """Return ``x**y``; negative bases take whole exponents only."""
    base, exponent = x.to("double"), y.to("double")
    size = exp_wide(fn, clamp(exponent * log_wide(fn, fn.abs(base)), -200.0, 200.0)).to("float")
    whole = _is_whole(fn, y)
    half = y * 0.5
    odd = whole & fn.unary("trunc", half).ne(half)
    negative = x.bits().lt(0)
    result = (negative & odd).where(-size, size)
    invalid = x.lt(0.0) & (whole ^ 1) & x.gt(-INF)
    result = invalid.where(NAN, result)
    one = x.eq(1.0) | y.eq(0.0) | (x.eq(-1.0) & fn.abs(y).eq(INF))
    return one.where(1.0, result)


def ldexp(fn: Function, x: Value, n: Value) -> Value:
    """Return ``x * 2**n`` for int32 `n`, rounded once."""
    n = n.gt(400).where(400, n)
    n = n.lt(-400).where(-400, n)
    factor = power_of_two(fn, n.to("i64"), "double")
    return (x.to("double") * factor).to("float")


def ldexp_double(fn: Function, x: Value, n: Value) -> Value:
    """Return ``x * 2**n`` in double: the C library's, which rounds once."""

    def one(value: Value, count: Value) -> Value:
        fn.declared.add("declare double @ldexp(double, i32)")
        return fn.call("ldexp", value.type, value, count)

    return fn.each_lane(one, x, n)


def fmod(fn: Function, x: Value, y: Value) -> Value:
    """Return ``x - trunc(x/y)*y`` exactly, with the sign of `x`."""
    a, b = fn.abs(x).to("double"), fn.abs(y).to("double")
    ratio = a / b
    # Below 2**28 the product n*b has at most 53 bits: the remainder is exact.
    moderate = ratio.lt(2.0**28) & b.lt(INF)

    def fast() -> Value:
        n = fn.unary("trunc", ratio)
        rest = a - fn.fence(n * b)
        rest = rest.lt(0.0).where(rest + b, rest)
        rest = rest.ge(b).where(rest - b, rest)
        return fn.copysign(rest.to("float"), x)

    def slow() -> Value:
        return fn.each_lane(lambda p, q: fn.outside("fmodf", p, q), x, y)

    return fn.either(fn.any(moderate ^ 1), slow, fast)


def hypot(fn: Function, x: Value, y: Value) -> Value:
    """Return ``sqrt(x*x + y*y)`` without overflow; infinite if either is, even beside NaN."""
    wide, other = x.to("double"), y.to("double")
    root = fn.unary("sqrt", fn.mad(wide, wide, other * other)).to("float")
    infinite = fn.abs(x).eq(INF) | fn.abs(y).eq(INF)
    return infinite.where(INF, root)
