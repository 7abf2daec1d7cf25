"""tanh through exp or a polynomial; the other hyperbolic functions in double."""

from __future__ import annotations

import math

from tile_cpu.llvm.builder import Function, Value
from tile_cpu.math.common import INF, NAN, clamp, in_double, keep_zero
from tile_cpu.math.exponential import exp_moderate, exp_wide, expm1_wide
from tile_cpu.math.logarithm import log1p_wide
from tile_cpu.math.piecewise_polynomials import from_pieces, pieces_at_hand, piecewise, split

# (tanh(x)/x - 1) / z in z = x**2, |x| <= 0.64; absolute error 7e-8.
_TANH = (
    -0.333333283662796,
    0.13332599401474,
    -0.05382600799202919,
    0.02088334783911705,
    -0.005937062669545412,
)
# tanh rounds to 1 above; sinh and cosh overflow single.
_TANH_ONE, _SINH_OVERFLOW = 9.02, 90.0
_TANH_SMALL = 0.625
# The last piece goes on to where tanh rounds to 1. Distances from its centre stay below the
# value there, as `from_pieces` asks.
_PIECES, _PIECE, _PIECE_DEGREE = 32, 17 / 64, 5


def tanh(fn: Function, x: Value) -> Value:
    """Return the hyperbolic tangent."""
    if pieces_at_hand(fn, x.type) == _PIECES:
        return _tanh_in_pieces(fn, x)
    size = clamp(fn.abs(x), 0.0, _TANH_ONE)
    z = size * size
    near = keep_zero(x, fn.mad(x * z, fn.polynomial(z, _TANH), x))
    far = 1.0 - 2.0 / (exp_moderate(fn, size + size) + 1.0)
    return size.lt(_TANH_SMALL).where(near, fn.copysign(far, x))


def _tanh_in_pieces(fn: Function, x: Value) -> Value:
    tables = piecewise(math.tanh, _PIECE, _PIECE_DEGREE, _PIECES, _TANH_ONE)
    size = fn.abs(x)
    limited = size.gt(_TANH_ONE).where(_TANH_ONE, size)
    number, d = split(fn, limited, _PIECE, last=_PIECES - 1)
    return fn.copysign(from_pieces(fn, tables, number, d), x)


def sinh(fn: Function, x: Value) -> Value:
    """Return the hyperbolic sine in double."""
    t = expm1_wide(fn, clamp(fn.abs(x), 0.0, _SINH_OVERFLOW))
    return fn.copysign((t + t / (t + 1.0)) * 0.5, x)


def cosh(fn: Function, x: Value) -> Value:
    """Return the hyperbolic cosine in double."""
    e = exp_wide(fn, clamp(fn.abs(x), 0.0, _SINH_OVERFLOW))
    return (e + 1.0 / e) * 0.5


def asinh(fn: Function, x: Value) -> Value:
    """Return the inverse hyperbolic sine in double."""
    size = fn.abs(x)
    square = size * size
    root = fn.unary("sqrt", square + 1.0)
    value = log1p_wide(fn, size + square / (root + 1.0))
    return fn.copysign(size.eq(INF).where(size, value), x)


def acosh(fn: Function, x: Value) -> Value:
    """Return the inverse hyperbolic cosine in double; NaN below 1."""
    over = x - 1.0
    value = log1p_wide(fn, over + fn.unary("sqrt", over * (x + 1.0)))
    return x.lt(1.0).where(NAN, value)


def _atanh_wide(fn: Function, x: Value) -> Value:
    size = fn.abs(x)
    return fn.copysign(log1p_wide(fn, (size + size) / (1.0 - size)) * 0.5, x)


def atanh(fn: Function, x: Value) -> Value:
    """Return the inverse hyperbolic tangent; NaN outside [-1, 1]."""
    return keep_zero(x, in_double(fn, _atanh_wide, x))
