"""The error function."""

from __future__ import annotations

import math

from tile_cpu.llvm.builder import Function, Value
from tile_cpu.math.common import clamp
from tile_cpu.math.exponential import exp
from tile_cpu.math.pieces import can_look_up, look_up, piecewise, split

# erf(x)/x - 1 in z = x**2, |x| <= 1; absolute error 5e-9.
_SMALL = (
    0.12837916612625122,
    -0.3761262595653534,
    0.11283594369888306,
    -0.02685421146452427,
    0.005189087241888046,
    -0.000801686430349946,
    7.875874871388078e-05,
)
# (log(1 - erf(t)) + t) / t on 1 <= t <= 4; absolute error 1e-7.
_LOG_COMPLEMENT = (
    -0.12895724177360535,
    -0.6339714527130127,
    -0.10809191316366196,
    0.025308601558208466,
    -0.004373922478407621,
    0.0005157455452717841,
    -3.6593010008800775e-05,
    1.1660324616968865e-06,
)
_ERF_ONE, _ERF_NEARLY_ONE = 4.0, 3.93  # erf rounds to 1 from about 3.92 on


# Absolute error of the polynomials: 1e-9.
_PIECE, _PIECE_DEGREE = 0.125, 5


def erf(fn: Function, x: Value) -> Value:
    """Return the error function."""
    if can_look_up(fn, x.type):
        return _erf_in_pieces(fn, x)
    size = clamp(fn.abs(x), 0.0, _ERF_ONE)
    z = size * size
    near = fn.mad(x, fn.polynomial(z, _SMALL), x)
    decay = fn.mad(size, fn.polynomial(size, _LOG_COMPLEMENT), -size)
    far = fn.copysign(1.0 - exp(fn, decay), x)
    return size.lt(1.0).where(near, far)


def _erf_in_pieces(fn: Function, x: Value) -> Value:
    size = fn.abs(x)
    number, d = split(fn, size, _PIECE)
    at_centre, slope, *higher = piecewise(math.erf, _PIECE, _PIECE_DEGREE)
    # Around 0 erf(d) is d + d*(slope - 1 ...), which rounds once.
    slope = (slope[0] - 1.0, *slope[1:])
    start = size.le(_PIECE / 2).where(d, look_up(fn, at_centre, number))
    rise = look_up(fn, higher[-1], number)
    for table in (*reversed(higher[:-1]), slope):
        rise = fn.mad(rise, d, look_up(fn, table, number))
    value = size.gt(_ERF_NEARLY_ONE).where(1.0, fn.mad(rise, d, start))
    return fn.copysign(value, x)
