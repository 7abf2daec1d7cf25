"""sin, cos, tan and their inverses; huge angles go to the C library's exact reduction."""

from __future__ import annotations

import math
from collections.abc import Callable

from tile_cpu.llvm.builder import Function, Value
from tile_cpu.math.common import INF, keep_zero, nearest

_HALF_PI = math.pi / 2
_HALF_PI_TAIL = 6.123233995736766e-17
# (sin(r)/r - 1) / z and (cos(r) - 1 + z/2) / z**2 in z = r**2, |r| <= pi/4: to 2.5e-8 and 2.5e-9.
_SIN = (-0.166666641831398, 0.008332747966051102, -0.00019587890710681677)
_COS = (0.0416666641831398, -0.001388830249197781, 2.454794230288826e-05)
# The same to 1e-16.
_SIN_DOUBLE = (
    -0.16666666666666666,
    0.008333333333330948,
    -0.00019841269836758574,
    2.755731610255244e-06,
    -2.5051131845003624e-08,
    1.5918129294866608e-10,
)
_COS_DOUBLE = (
    0.041666666666666664,
    -0.0013888888888887398,
    2.480158729876569e-05,
    -2.7557317271729793e-07,
    2.08761462684032e-09,
    -1.1382632425521717e-11,
)
# (atan(x)/x - 1) / z in z = x**2, |x| <= 1; absolute error 1.7e-12.
_ATAN_DOUBLE = (
    -0.3333333333316827,
    0.19999999935142282,
    -0.14285710020067355,
    0.11110999508742127,
    -0.09089368031943441,
    0.07679381276430296,
    -0.06595124596280294,
    0.05606687035291111,
    -0.04494995162541376,
    0.03165803796192987,
    -0.01798369324520612,
    0.0074572473304224075,
    -0.0019608268978377713,
    0.0002420321329492996,
)
# (asin(x)/x - 1) / z in z = x**2, |x| <= 1/2; absolute error 6e-14.
_ASIN_DOUBLE = (
    0.1666666666666218,
    0.07500000003584559,
    0.04464285243793872,
    0.030382182776212484,
    0.02236606593888501,
    0.017441495685492855,
    0.01318791613675373,
    0.015675662527070935,
    -0.0029397929067241963,
    0.0279070314326661,
)
# Up to here n*(pi/2) is subtracted without error that shows in single.
_FAST_ANGLE = 2.0**30


def _reduced(fn: Function, x: Value) -> tuple[Value, Value]:
    """Return ``(r, n)`` in double and i64 with ``x = n*pi/2 + r``; only n's low bits count."""
    wide = x.to("double")
    n, shifted = nearest(fn, wide, 2.0 / math.pi)
    r = fn.fma(n, -_HALF_PI_TAIL, fn.fma(n, -_HALF_PI, wide))
    return r, shifted


def _angle(fn: Function, x: Value, name: str, fast: Callable[[], Value]) -> Value:
    """Return `fast` if every angle is moderate, else the C library's answer for all lanes."""
    huge = fn.any(fn.abs(x).lt(_FAST_ANGLE) ^ 1)

    def slow() -> Value:
        return fn.each_lane(lambda v: fn.outside(name, v.to("double")).to("float"), x)

    return fn.either(huge, slow, fast)


def _quarter(fn: Function, x: Value, turn: int) -> Value:
    """Return ``sin(x + turn*pi/2)``."""
    wide, shifted = _reduced(fn, x)
    r, quadrant = wide.to("float"), shifted.to("i32") + turn
    z = r * r
    sine = keep_zero(r, fn.mad(r * z, fn.polynomial(z, _SIN), r))
    cosine = fn.mad(z * z, fn.polynomial(z, _COS), fn.mad(z, -0.5, fn.constant(1.0, z.type)))
    value = (quadrant & 1).ne(0).where(cosine, sine)
    return (value.bits() ^ (quadrant & 2).shl(30)).bitcast(x.type)


def sin(fn: Function, x: Value) -> Value:
    """Return the sine, for angles of any size."""
    return _angle(fn, x, "sin", lambda: _quarter(fn, x, 0))


def cos(fn: Function, x: Value) -> Value:
    """Return the cosine, for angles of any size."""
    return _angle(fn, x, "cos", lambda: _quarter(fn, x, 1))


def tan(fn: Function, x: Value) -> Value:
    """Return the tangent, for angles of any size."""

    def fast() -> Value:
        r, quadrant = _reduced(fn, x)
        z = r * r
        sine = r * fn.mad(z, fn.polynomial(z, _SIN_DOUBLE), 1.0)
        half = fn.mad(z, -0.5, fn.constant(1.0, z.type))
        cosine = fn.mad(z * z, fn.polynomial(z, _COS_DOUBLE), half)
        odd = (quadrant & 1).ne(0)
        return (odd.where(cosine, sine) / odd.where(-sine, cosine)).to("float")

    return _angle(fn, x, "tan", fast)


def atan(fn: Function, x: Value) -> Value:
    """Return the arc tangent, in double, in [-pi/2, pi/2]."""
    size = fn.abs(x)
    big = size.gt(1.0)
    q = big.where(1.0 / size, size)
    z = q * q
    p = q * fn.mad(z, fn.polynomial(z, _ATAN_DOUBLE), 1.0)
    return fn.copysign(big.where(_HALF_PI - p, p), x)


def atan2(fn: Function, y: Value, x: Value) -> Value:
    """Return the angle of the point (x, y), in double, in [-pi, pi]."""
    high, low = fn.abs(x), fn.abs(y)
    steep = low.gt(high)
    high, low = steep.where(low, high), steep.where(high, low)
    ratio = high.eq(0.0).where(0.0, low.eq(INF).where(1.0, low / high))
    p = atan(fn, ratio)
    p = steep.where(_HALF_PI - p, p)
    p = x.bits().lt(0).where(math.pi - p, p)
    p = x.ne(x).where(x, y.ne(y).where(y, p))
    return fn.copysign(p, y)


def _asin_parts(fn: Function, x: Value) -> tuple[Value, Value]:
    """Return ``(big, p)``: asin|x| is p, or pi/2 - 2p where big (|x| > 1/2)."""
    size = fn.abs(x)
    big = size.gt(0.5)
    z = big.where((1.0 - size) * 0.5, size * size)
    s = big.where(fn.unary("sqrt", z), size)
    return big, s * fn.mad(z, fn.polynomial(z, _ASIN_DOUBLE), 1.0)


def asin(fn: Function, x: Value) -> Value:
    """Return the arc sine, in double, in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    big, p = _asin_parts(fn, x)
    return fn.copysign(big.where(_HALF_PI - 2.0 * p, p), x)


def acos(fn: Function, x: Value) -> Value:
    """Return the arc cosine, in double, in [0, pi]; NaN outside [-1, 1]."""
    big, p = _asin_parts(fn, x)
    outer = x.lt(0.0).where(math.pi - 2.0 * p, 2.0 * p)
    return big.where(outer, _HALF_PI - fn.copysign(p, x))
