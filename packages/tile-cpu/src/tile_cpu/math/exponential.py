"""exp, exp2, exp10, expm1, sigmoid: reduction to |r| <= ln(2)/2, a polynomial, a power of two."""

from __future__ import annotations

import math

from tile_cpu.llvm.builder import Function, Value
from tile_cpu.math.common import (
    LN2,
    clamp,
    has_scale,
    in_double,
    keep_zero,
    library,
    nearest,
    nearest_power,
    nearest_to_scale,
    power_of_two,
    scale,
    scale_by,
)

# (exp(r) - 1 - r) / r**2 on |r| <= ln(2)/2; absolute errors 7e-8 and 1e-16.
_EXP = (
    0.5,
    0.16666577756404877,
    0.041666556149721146,
    0.008363173343241215,
    0.0013926175888627768,
)
_EXP_NEGATIVE = tuple(c if k % 2 == 0 else -c for k, c in enumerate(_EXP))
_EXP_DOUBLE = (
    0.5,
    0.16666666666666669,
    0.041666666666624164,
    0.008333333333330065,
    0.0013888888917196719,
    0.00019841269863040545,
    2.4801521322368692e-05,
    2.7557268480310024e-06,
    2.7620075879983367e-07,
    2.5100375832561234e-08,
)
# (2**f - 1) / f on |f| <= 1/2; absolute error 1.4e-8.
_EXP2 = (
    0.6931471824645996,
    0.24022650718688965,
    0.055503569543361664,
    0.009618083015084267,
    0.0013390863314270973,
    0.00015453163359779865,
)
# Polynomials are multiplied by 2**-_DOWN, powers of two by 2**_DOWN, where results may be denormal:
# one product makes them, and rounds once. Powers up to 2**(127 - _DOWN) are normal then.
_DOWN = 64
# Beyond these the result is 0 or inf whatever the rest of x. The highest make both factors of
# `scale` infinite: of a finite one, a fused subtraction of inf would see no inf before it rounds.
_LOWEST_EXP2, _HIGHEST_EXP2 = -151.0, 256.0
_LOWEST_EXP, _HIGHEST_EXP = -105.0, 177.5
_SIGMOID_ONE = 20.0  # it rounds to 1 above 17.3 already
_LOWEST_EXP10, _HIGHEST_EXP10 = -45.6, 77.1
_LOG2_E, _LOG2_10 = math.log2(math.e), math.log2(10.0)
# Head and tail: head + tail carries twice the bits of a float.
_LN2 = (0.693359375, -2.12194440054690583e-4)
_LOG10_2 = (0.3010300099849701, -1.4320988897559699e-08)
_LN10 = (2.3025851249694824, -3.197543673785701e-08)


def exp2(fn: Function, x: Value) -> Value:
    """Return ``2**x``."""
    if has_scale(fn, x.type):
        n = fn.unary("nearbyint", x)
        # For infinite x this is NaN, which the scaling turns into inf or 0 as it should be.
        return scale_by(fn, _exp2_of_fraction(fn, x - n), n)
    x = clamp(x, _LOWEST_EXP2, _HIGHEST_EXP2)
    n, shifted = nearest_to_scale(fn, x)
    return scale(fn, _exp2_of_fraction(fn, x - n), n, shifted)


def exp2_nonpositive(fn: Function, x: Value) -> Value:
    """Return ``2**min(x, 0)``; NaN stays NaN."""
    if has_scale(fn, x.type):
        return exp2(fn, x.gt(0.0).where(0.0, x))
    x = clamp(x, _LOWEST_EXP2, 0.0)
    n, power = nearest_power(fn, x, more=_DOWN)
    return _exp2_of_fraction(fn, x - n, _DOWN) * power


def _exp2_of_fraction(fn: Function, f: Value, down: int = 0) -> Value:
    """Return ``2**(f - down)`` for |f| <= 1/2."""
    return _lowered(fn, f, (1.0, *_EXP2), down)


def _lowered(fn: Function, x: Value, coefficients: tuple[float, ...], down: int) -> Value:
    """Return the polynomial of `x` times ``2**-down``, exactly that of the rounded polynomial."""
    return fn.polynomial(x, [c * 2.0**-down for c in coefficients])


def exp(fn: Function, x: Value) -> Value:
    """Return ``e**x``."""
    x = clamp(x, _LOWEST_EXP, _HIGHEST_EXP)
    n, shifted = nearest_to_scale(fn, x, _LOG2_E)
    return scale(fn, _exp_of_rest(fn, _less_ln2(fn, x, n)), n, shifted)


def exp_nonpositive(fn: Function, x: Value) -> Value:
    """Return ``e**min(x, 0)``; NaN stays NaN."""
    if has_scale(fn, x.type):
        return exp(fn, x.gt(0.0).where(0.0, x))
    x = clamp(x, _LOWEST_EXP, 0.0)
    n, power = nearest_power(fn, x, _LOG2_E, more=_DOWN)
    return _exp_of_rest(fn, _less_ln2(fn, x, n), _DOWN) * power


def exp_moderate(fn: Function, x: Value) -> Value:
    """Return ``e**x`` for |x| < 80; NaN stays NaN, all else means nothing."""
    n, power = nearest_power(fn, x, _LOG2_E)
    return _exp_of_rest(fn, _less_ln2(fn, x, n)) * power


def _less_ln2(fn: Function, x: Value, n: Value) -> Value:
    """Return ``x - n*ln(2)``."""
    return fn.mad(n, -_LN2[1], fn.mad(n, -_LN2[0], x))


def _exp_of_rest(fn: Function, r: Value, down: int = 0) -> Value:
    """Return ``e**r * 2**-down`` for |r| <= ln(2)/2."""
    return _lowered(fn, r, (1.0, 1.0, *_EXP), down)


def exp10(fn: Function, x: Value) -> Value:
    """Return ``10**x``."""
    x = clamp(x, _LOWEST_EXP10, _HIGHEST_EXP10)
    if not fn.machine.fuses_multiply_add:
        return in_double(fn, lambda f, wide: exp_wide(f, wide * math.log(10.0)), x)
    n, shifted = nearest_to_scale(fn, x, _LOG2_10)
    r = fn.mad(n, -_LOG10_2[1], fn.mad(n, -_LOG10_2[0], x))
    y = fn.fence(r * _LN10[0])
    tail = fn.mad(r, _LN10[1], fn.mad(r, _LN10[0], -y))
    p = (y + fn.mad(y * y, fn.polynomial(y, _EXP), tail)) + 1.0
    return scale(fn, p, n, shifted)


def sigmoid(fn: Function, x: Value) -> Value:
    """Return ``1 / (1 + exp(-x))``, exact down to denormals on the negative side.

    With ``x = n*ln(2) + r`` that is ``2**n / (2**n + exp(-r))``.
    """
    x = clamp(x, _LOWEST_EXP, _SIGMOID_ONE)
    one = fn.constant(1.0, x.type)
    n, power = _sigmoid_power(fn, x, one)
    r = _less_ln2(fn, x, n)
    rest = r * fn.mad(r, fn.polynomial(r, _EXP_NEGATIVE), -1.0)  # exp(-r) - 1
    # Of three summands the largest comes last, or 1 + 2**n is exact: one rounding counts.
    is_small = n.lt(0.0)
    whole = is_small.where(one, power + 1.0) + (rest + is_small.where(power, 0.0))
    return power / whole


def _sigmoid_power(fn: Function, x: Value, one: Value) -> tuple[Value, Value]:
    """Return ``n = round(x / ln(2))`` and ``2**n``, 0 where that is less than any float."""
    if has_scale(fn, x.type):
        n, shifted = nearest_to_scale(fn, x, _LOG2_E)
        return n, scale(fn, one, n, shifted)
    n, power = nearest_power(fn, x, _LOG2_E, more=_DOWN)
    return n, power * 2.0**-_DOWN


def sigmoid_double(fn: Function, x: Value) -> Value:
    """Return ``1 / (1 + exp(-x))`` in double."""
    small = library("exp")(fn, -fn.abs(x))
    return x.lt(0.0).where(small, 1.0) / (small + 1.0)


def exp10_double(fn: Function, x: Value) -> Value:
    """Return ``10**x`` in double."""
    return fn.each_lane(lambda each: fn.outside("pow", fn.constant(10.0, each.type), each), x)


def split_exp(fn: Function, x: Value) -> tuple[Value, Value]:
    """Return ``(m, s)`` with ``exp(x) = s*(1 + m)``, in double for |x| < 700, to 1e-16."""
    n, shifted = nearest(fn, x, _LOG2_E)
    r = fn.mad(n, -LN2, x) if not fn.machine.fuses_multiply_add else _reduced(fn, x, n)
    m = r * fn.mad(r, fn.polynomial(r, _EXP_DOUBLE), 1.0)
    return m, power_of_two(fn, shifted, "double")


def _reduced(fn: Function, x: Value, n: Value) -> Value:
    return fn.fma(n, -2.3190468138462996e-17, fn.fma(n, -LN2, x))


def exp_wide(fn: Function, x: Value) -> Value:
    """Return ``e**x`` in double for |x| < 700."""
    m, s = split_exp(fn, x)
    return fn.mad(s, m, s)


def expm1_wide(fn: Function, x: Value) -> Value:
    """Return ``e**x - 1`` in double for |x| < 700, also near 0; the sign of 0 is lost."""
    m, s = split_exp(fn, x)
    return fn.mad(s, m, s - 1.0)


def expm1(fn: Function, x: Value) -> Value:
    """Return ``e**x - 1`` without cancellation near 0."""
    limited = clamp(x, _LOWEST_EXP, 90.0)
    return keep_zero(x, in_double(fn, expm1_wide, limited))
