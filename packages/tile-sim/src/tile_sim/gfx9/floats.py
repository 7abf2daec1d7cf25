"""Floating-point instructions of lanes: arithmetic, functions, and steps of divisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tile_sim.gfx9.operation import Operation, operation

F16, F32, F64 = np.float16, np.float32, np.float64
TWO_PI = F64(2 * np.pi)


def fma32(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` with one rounding: a product of floats is exact in a double."""
    return (a.astype(F64) * b + c).astype(F32)


def fma16(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` of halves with one rounding."""
    return (a.astype(F64) * b + c).astype(F16)


def fma64(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` of doubles, the product being kept as the sum of two doubles."""
    product = a * b
    split = F64(134217729.0)
    ta, tb = a * split, b * split
    ah, bh = ta - (ta - a), tb - (tb - b)
    al, bl = a - ah, b - bh
    error = ((ah * bh - product) + ah * bl + al * bh) + al * bl
    total = product + c
    back = total - product
    rest = (product - (total - back)) + (c - back)
    found = total + (rest + error)
    return np.where(np.isfinite(found), found, product + c)


def _median(a: Any, b: Any, c: Any) -> Any:
    middle = np.fmax(np.fmin(a, b), np.fmin(np.fmax(a, b), c))
    least = np.fmin(np.fmin(a, b), c)
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), least, middle)


def _mantissa(a: Any) -> Any:
    mantissa, _ = np.frexp(a)
    return np.where(np.isfinite(a), mantissa, a)


def _exponent(a: Any) -> Any:
    _, exponent = np.frexp(a)
    return np.where(np.isfinite(a), exponent, 0).astype(np.int32)


def _exponent16(a: Any) -> Any:
    return _exponent(a).astype(np.int16)


def _fraction(a: Any) -> Any:
    below_one = np.nextafter(a.dtype.type(1), a.dtype.type(0))
    return np.minimum(a - np.floor(a), below_one)


def _scale(a: Any, exponent: Any) -> Any:
    return np.ldexp(a, np.clip(exponent.astype(np.int32), -2000, 2000))


def _turns(function: Any) -> Any:
    return lambda a: function(_fraction(a).astype(F64) * TWO_PI).astype(a.dtype)


def _reciprocal(a: Any) -> Any:
    return a.dtype.type(1) / a


def _reciprocal_root(a: Any) -> Any:
    return (F64(1) / np.sqrt(a.astype(F64))).astype(a.dtype)


def div_fixup(quotient: Any, denominator: Any, numerator: Any) -> Any:
    """Return the quotient, put right where a division has a special result."""
    kind = quotient.dtype.type
    sign = np.signbit(denominator) ^ np.signbit(numerator)
    infinite, zero = kind(np.inf), kind(0)
    magnitude = np.abs(quotient)
    d0, n0 = denominator == 0, numerator == 0
    di, ni = np.isinf(denominator), np.isinf(numerator)
    magnitude = np.where(d0 | ni, infinite, magnitude)
    magnitude = np.where((di | n0) & ~(d0 | ni), zero, magnitude)
    found = np.where(sign, -magnitude, magnitude)
    bad = np.isnan(denominator) | np.isnan(numerator) | (d0 & n0) | (di & ni)
    return np.where(bad, kind(np.nan), found).astype(quotient.dtype)


def _three(function: Any) -> Any:
    return lambda a, b, c: function(function(a, b), c)


def _arithmetic(form: str) -> dict[str, Operation]:
    """Return what exists in every width."""
    one, two = f"{form} -> {form}", f"{form} {form} -> {form}"
    return {
        f"v_add_{form}": operation(two, np.add),
        f"v_mul_{form}": operation(two, np.multiply),
        f"v_min_{form}": operation(two, np.fmin),
        f"v_max_{form}": operation(two, np.fmax),
        f"v_fract_{form}": operation(one, _fraction),
        f"v_floor_{form}": operation(one, np.floor),
        f"v_ceil_{form}": operation(one, np.ceil),
        f"v_trunc_{form}": operation(one, np.trunc),
        f"v_rndne_{form}": operation(one, np.rint),
        f"v_frexp_mant_{form}": operation(one, _mantissa),
        f"v_rcp_{form}": operation(one, _reciprocal, is_slow=True),
        f"v_rsq_{form}": operation(one, _reciprocal_root, is_slow=True),
        f"v_sqrt_{form}": operation(one, np.sqrt, is_slow=True),
    }


def _narrow(form: str, fma: Any) -> dict[str, Operation]:
    """Return what exists for words and halves."""
    one, two = f"{form} -> {form}", f"{form} {form} -> {form}"
    three, keeps = f"{form} {form} {form} -> {form}", form == "f16"
    return {
        f"v_sub_{form}": operation(two, np.subtract),
        f"v_subrev_{form}": operation(two, lambda a, b: b - a),
        f"v_exp_{form}": operation(one, np.exp2, is_slow=True),
        f"v_log_{form}": operation(one, np.log2, is_slow=True),
        f"v_sin_{form}": operation(one, _turns(np.sin), is_slow=True),
        f"v_cos_{form}": operation(one, _turns(np.cos), is_slow=True),
        f"v_fma_{form}": operation(three, fma, keeps_half=keeps),
        f"v_mad_{form}": operation(three, fma, keeps_half=keeps),
        f"v_fmac_{form}": operation(two, fma, accumulates=True, keeps_half=keeps),
        f"v_mac_{form}": operation(two, fma, accumulates=True, keeps_half=keeps),
        f"v_min3_{form}": operation(three, _three(np.fmin), keeps_half=keeps),
        f"v_max3_{form}": operation(three, _three(np.fmax), keeps_half=keeps),
        f"v_med3_{form}": operation(three, _median, keeps_half=keeps),
        f"v_div_fixup_{form}": operation(three, div_fixup, keeps_half=keeps),
        # The constant of these two is an operand in the text: last of one, between of the other.
        f"v_fmaak_{form}": operation(three, fma),
        f"v_fmamk_{form}": operation(three, fma),
        f"v_madak_{form}": operation(three, fma),
        f"v_madmk_{form}": operation(three, fma),
    }


FLOATS: Mapping[str, Operation] = {
    **_arithmetic("f16"),
    **_arithmetic("f32"),
    **_arithmetic("f64"),
    **_narrow("f16", fma16),
    **_narrow("f32", fma32),
    "v_fma_f64": operation("f64 f64 f64 -> f64", fma64),
    "v_fmac_f64": operation("f64 f64 -> f64", fma64, accumulates=True),
    "v_div_fixup_f64": operation("f64 f64 f64 -> f64", div_fixup),
    "v_ldexp_f16": operation("f16 i16 -> f16", _scale),
    "v_ldexp_f32": operation("f32 i32 -> f32", _scale),
    "v_ldexp_f64": operation("f64 i32 -> f64", _scale),
    "v_frexp_exp_i32_f32": operation("f32 -> i32", _exponent),
    "v_frexp_exp_i32_f64": operation("f64 -> i32", _exponent),
    "v_frexp_exp_i16_f16": operation("f16 -> i16", _exponent16),
    "v_mul_legacy_f32": operation(
        "f32 f32 -> f32", lambda a, b: np.where((a == 0) | (b == 0), F32(0), a * b)
    ),
    "v_rcp_iflag_f32": operation("f32 -> f32", _reciprocal, is_slow=True),
    "v_minimum3_f32": operation("f32 f32 f32 -> f32", _three(np.minimum)),
    "v_maximum3_f32": operation("f32 f32 f32 -> f32", _three(np.maximum)),
    "v_exp_legacy_f32": operation("f32 -> f32", np.exp2, is_slow=True),
    "v_log_legacy_f32": operation("f32 -> f32", np.log2, is_slow=True),
}
"""Instructions on floats."""
