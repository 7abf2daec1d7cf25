"""log, log2, log10, log1p: mantissa in [sqrt(1/2), sqrt(2)), a polynomial, the exponent."""

from __future__ import annotations

from tile_cpu.llvm.builder import Function, Value
from tile_cpu.math.common import INF, LN2, NAN, in_double, keep_zero, power_of_two

# (log(1 + t) - t) / t**2 on sqrt(1/2) <= 1 + t < sqrt(2); absolute error 3.5e-8.
_LOG = (
    -0.4999999701976776,
    0.3333333134651184,
    -0.2500078082084656,
    0.20001234114170074,
    -0.16626645624637604,
    0.14204855263233185,
    -0.13127554953098297,
    0.12722672522068024,
    -0.07673641294240952,
)
# (2*atanh(s)/s - 2) / s**2 in z = s**2, s = t/(2 + t) on the same interval; error 3e-16.
_ATANH_DOUBLE = (
    0.666666666666667,
    0.39999999999899505,
    0.28571428625975487,
    0.2222221113479508,
    0.18182889125261723,
    0.15331721600556042,
    0.14616449685043406,
)
_SQRT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
_MANTISSA = {32: 23, 64: 52}
# Head and tail of constants: together they carry twice the bits of a float.
_LN2 = (0.693359375, -2.12194440054690583e-4)
_LOG2_E = (1.4426950216293335, 1.9259629911266175e-08)
_LOG10_E = (0.4342944920063019, -1.0103050052231683e-08)
_LOG10_2 = (0.3010300099849701, -1.4320988897559699e-08)


def _split(fn: Function, x: Value) -> tuple[Value, Value]:
    """Return mantissa and integer exponent of positive normal floats."""
    width = x.type.bits
    bits = x.bits()
    exponent = (bits - _SQRT_HALF_BITS[width]).ashr(_MANTISSA[width])
    return (bits - exponent.shl(_MANTISSA[width])).bitcast(x.type), exponent


def _special(x: Value, result: Value) -> Value:
    """Return `result` for positive finite `x`, and what a logarithm is elsewhere."""
    outside = x.eq(0.0).where(-INF, x.eq(INF).where(x, x * NAN))
    return x.gt(0.0).where(x.lt(INF).where(result, outside), outside)


def _parts(fn: Function, x: Value) -> tuple[Value, Value, Value]:
    """Return ``(e, t, rest)`` with ``log(x) = e*ln(2) + t + rest`` and ``t = m - 1``."""
    tiny = x.lt(2.0**-126)
    mantissa, exponent = _split(fn, tiny.where(x * 2.0**23, x))
    e = exponent.to("float") - tiny.where(23.0, fn.constant(0.0, x.type))
    t = mantissa - 1.0
    return e, t, (t * t) * fn.polynomial(t, _LOG)


def log(fn: Function, x: Value) -> Value:
    """Return the natural logarithm."""
    e, t, rest = _parts(fn, x)
    result = fn.mad(e, _LN2[0], t + fn.mad(e, _LN2[1], rest))
    return _special(x, result)


def log2(fn: Function, x: Value) -> Value:
    """Return the logarithm to base 2; exact for powers of two."""
    e, t, rest = _parts(fn, x)
    inner = fn.mad(t, _LOG2_E[1], rest * _LOG2_E[0])
    return _special(x, e + fn.mad(t, _LOG2_E[0], inner))


def log10(fn: Function, x: Value) -> Value:
    """Return the logarithm to base 10."""
    e, t, rest = _parts(fn, x)
    inner = fn.mad(e, _LOG10_2[1], fn.mad(t, _LOG10_E[1], rest * _LOG10_E[0]))
    return _special(x, fn.mad(e, _LOG10_2[0], fn.mad(t, _LOG10_E[0], inner)))


def _log_of_ratio(fn: Function, t: Value, exponent: Value) -> Value:
    """Return ``log(1 + t) + exponent*ln(2)`` in double, to 1e-15 of the result."""
    s = t / (t + 2.0)
    z = s * s
    near = s * fn.mad(z, fn.polynomial(z, _ATANH_DOUBLE), 2.0)
    return fn.mad(exponent.to("i32").to("double"), LN2, near)


def log_wide(fn: Function, x: Value) -> Value:
    """Return the natural logarithm in double; denormal doubles are not handled."""
    mantissa, exponent = _split(fn, x)
    return _special(x, _log_of_ratio(fn, mantissa - 1.0, exponent))


def log1p_wide(fn: Function, x: Value) -> Value:
    """Return ``log(1 + x)`` in double, also near 0; the sign of 0 is lost."""
    u = x + 1.0
    mantissa, exponent = _split(fn, u)
    lost = x - (u - 1.0)
    t = (mantissa - 1.0) + lost * power_of_two(fn, -exponent, "double")
    return _special(u, _log_of_ratio(fn, t, exponent))


def log1p(fn: Function, x: Value) -> Value:
    """Return ``log(1 + x)`` without cancellation near 0."""
    return keep_zero(x, in_double(fn, log1p_wide, x))
