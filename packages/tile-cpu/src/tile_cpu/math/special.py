"""The error function."""

from __future__ import annotations

import math

from tile_cpu.llvm.builder import Function, Value
from tile_cpu.math.common import clamp
from tile_cpu.math.exponential import exp_moderate
from tile_cpu.math.piecewise_polynomials import from_pieces, pieces_at_hand, piecewise, split

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

# By the number of pieces: their width and degree, where the last one ends, and from where on
# the function counts as 1, so that the last piece of 32 is a constant, off by 7e-8 at first.
# The polynomials are off by 7e-9 elsewhere, by less where erf is small.
_PIECES = {32: (0.125, 4, 3.9, 3.8), 8: (67 / 128, 6, 3.92, 3.92)}


def erf(fn: Function, x: Value) -> Value:
    """Return the error function."""
    if pieces_at_hand(fn, x.type):
        return _erf_in_pieces(fn, x)
    size = clamp(fn.abs(x), 0.0, _ERF_ONE)
    z = size * size
    near = fn.mad(x, fn.polynomial(z, _SMALL), x)
    decay = fn.mad(size, fn.polynomial(size, _LOG_COMPLEMENT), -size)
    far = fn.copysign(1.0 - exp_moderate(fn, decay), x)
    return size.lt(1.0).where(near, far)


def _erf_in_pieces(fn: Function, x: Value) -> Value:
    count = pieces_at_hand(fn, x.type)
    width, degree, end, one = _PIECES[count]
    tables = piecewise(lambda t: 1.0 if t > one else math.erf(t), width, degree, count, end)
    size = fn.abs(x)
    number, d = split(fn, size.gt(end).where(end, size), width)
    return fn.copysign(from_pieces(fn, tables, number, d), x)
