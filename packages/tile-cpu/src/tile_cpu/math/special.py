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
_ERF_ONE = 4.0  # erf rounds to 1 from about 3.92 on

# Absolute error of the polynomials: 7e-9, less where erf is small.
_PIECE, _PIECE_DEGREE = 0.125, 4
# The last piece is the constant 1, off by 7e-8 at its beginning; larger arguments count as
# this one of its.
_LAST_PIECE, _IN_LAST_PIECE = 3.8, 3.9


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
    number, d = split(fn, size.gt(_IN_LAST_PIECE).where(_IN_LAST_PIECE, size), _PIECE)
    at_centre, slope, *higher = piecewise(_erf_up_to_one, _PIECE, _PIECE_DEGREE)
    # Around 0 erf(d) is d + d*(slope - 1 ...), which rounds once. Everywhere else the value
    # at the centre is larger than d; a maximum is cheaper than a comparison and a choice.
    slope = (slope[0] - 1.0, *slope[1:])
    centre = look_up(fn, at_centre, number)
    start = centre.gt(d).where(centre, d)
    rise = look_up(fn, higher[-1], number)
    for table in (*reversed(higher[:-1]), slope):
        rise = fn.mad(rise, d, look_up(fn, table, number))
    return fn.copysign(fn.mad(rise, d, start), x)


def _erf_up_to_one(t: float) -> float:
    return 1.0 if t > _LAST_PIECE else math.erf(t)
