"""Instructions of lanes on floats: arithmetic, functions, steps of divisions, and conversions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tile_sim.gfx9.operand_sources import Operation, operation

U32, F16, F32, F64 = np.uint32, np.float16, np.float32, np.float64
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
        f"v_mac_{form}": operation(two, fma, accumulates=True, keeps_half=keeps),
        f"v_min3_{form}": operation(three, _three(np.fmin), keeps_half=keeps),
        f"v_max3_{form}": operation(three, _three(np.fmax), keeps_half=keeps),
        f"v_med3_{form}": operation(three, _median, keeps_half=keeps),
        f"v_div_fixup_{form}": operation(three, div_fixup, keeps_half=keeps),
        # The constant of these two is an operand in the text: last of one, between of the other.
        f"v_madak_{form}": operation(three, fma),
        f"v_madmk_{form}": operation(three, fma),
    }


FLOATS: Mapping[str, Operation] = {
    **_arithmetic("f16"),
    **_arithmetic("f32"),
    **_arithmetic("f64"),
    **_narrow("f16", fma16),
    **_narrow("f32", fma32),
    "v_fmac_f32": operation("f32 f32 -> f32", fma32, accumulates=True),
    "v_fmaak_f32": operation("f32 f32 f32 -> f32", fma32),
    "v_fmamk_f32": operation("f32 f32 f32 -> f32", fma32),
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


def to_integer(dtype: Any, rounding: Any = np.trunc) -> Callable[[Any], Any]:
    """Return a conversion that saturates, and makes zero of what is no number."""
    limits = np.iinfo(dtype)

    def convert(a: Any) -> Any:
        whole = rounding(a.astype(F64))
        whole = np.where(np.isnan(whole), 0.0, whole)
        return np.clip(whole, float(limits.min), float(limits.max)).astype(np.int64).astype(dtype)

    return convert


def toward_zero16(a: Any) -> Any:
    """Round floats to halves toward zero."""
    a = np.asarray(a, F32)
    near = a.astype(F16)
    over = np.abs(near.astype(F32)) > np.abs(a)
    less = (near.view(np.uint16) - np.uint16(1)).view(F16)
    return np.where(over & ~np.isinf(a), less, near)


def bfloat16_bits(a: Any) -> Any:
    """Round floats to the upper halves of floats, ties to even."""
    bits = np.asarray(a, F32).view(U32)
    rounded = (bits + U32(0x7FFF) + (bits >> U32(16) & U32(1))) >> U32(16)
    return np.where(np.isnan(a), bits >> U32(16) | U32(0x40), rounded)


def _pack(low: Any, high: Any) -> Any:
    return low.view(np.uint16).astype(U32) | high.view(np.uint16).astype(U32) << U32(16)


def _saturated(dtype: Any) -> Callable[[Any, Any], Any]:
    limits = np.iinfo(dtype)

    def convert(a: Any, b: Any) -> Any:
        low, high = (np.clip(np.asarray(x), limits.min, limits.max).astype(dtype) for x in (a, b))
        return _pack(low, high)

    return convert


def _normalised(dtype: Any, least: float, scale: float) -> Callable[[Any, Any], Any]:
    def one(a: Any) -> Any:
        number = np.nan_to_num(np.clip(np.asarray(a).astype(F64), least, 1.0))
        return np.rint(number * scale).astype(dtype)

    return lambda a, b: _pack(one(a), one(b))


def _put_byte(a: Any, index: Any, old: Any) -> Any:
    shift = (index & U32(3)) * U32(8)
    value = to_integer(np.uint8, np.rint)(a).astype(U32)
    return old & ~(U32(255) << shift) | value << shift


def _byte(position: int) -> Callable[[Any], Any]:
    return lambda a: (a >> U32(8 * position) & U32(255)).astype(F32)


def _half_up(a: Any) -> Any:
    return np.floor(a + 0.5)


CONVERSIONS: Mapping[str, Operation] = {
    "v_cvt_f32_i32": operation("i32 -> f32", lambda a: a.astype(F32)),
    "v_cvt_f32_u32": operation("u32 -> f32", lambda a: a.astype(F32)),
    "v_cvt_i32_f32": operation("f32 -> i32", to_integer(np.int32)),
    "v_cvt_u32_f32": operation("f32 -> u32", to_integer(np.uint32)),
    "v_cvt_rpi_i32_f32": operation("f32 -> i32", to_integer(np.int32, _half_up)),
    "v_cvt_flr_i32_f32": operation("f32 -> i32", to_integer(np.int32, np.floor)),
    "v_cvt_f16_f32": operation("f32 -> f16", lambda a: a.astype(F16)),
    "v_cvt_f32_f16": operation("f16 -> f32", lambda a: a.astype(F32)),
    "v_cvt_f16_u16": operation("u16 -> f16", lambda a: a.astype(F16)),
    "v_cvt_f16_i16": operation("i16 -> f16", lambda a: a.astype(F16)),
    "v_cvt_u16_f16": operation("f16 -> u16", to_integer(np.uint16)),
    "v_cvt_i16_f16": operation("f16 -> i16", to_integer(np.int16)),
    "v_cvt_f64_f32": operation("f32 -> f64", lambda a: a.astype(F64)),
    "v_cvt_f32_f64": operation("f64 -> f32", lambda a: a.astype(F32)),
    "v_cvt_f64_i32": operation("i32 -> f64", lambda a: a.astype(F64)),
    "v_cvt_f64_u32": operation("u32 -> f64", lambda a: a.astype(F64)),
    "v_cvt_i32_f64": operation("f64 -> i32", to_integer(np.int32)),
    "v_cvt_u32_f64": operation("f64 -> u32", to_integer(np.uint32)),
    "v_cvt_f32_ubyte0": operation("u32 -> f32", _byte(0)),
    "v_cvt_f32_ubyte1": operation("u32 -> f32", _byte(1)),
    "v_cvt_f32_ubyte2": operation("u32 -> f32", _byte(2)),
    "v_cvt_f32_ubyte3": operation("u32 -> f32", _byte(3)),
    "v_cvt_pk_u8_f32": operation("f32 u32 u32 -> u32", _put_byte),
    "v_cvt_pkrtz_f16_f32": operation(
        "f32 f32 -> u32", lambda a, b: _pack(toward_zero16(a), toward_zero16(b))
    ),
    "v_cvt_pk_f16_f32": operation(
        "f32 f32 -> u32", lambda a, b: _pack(np.asarray(a).astype(F16), np.asarray(b).astype(F16))
    ),
    "v_cvt_pk_i16_i32": operation("i32 i32 -> u32", _saturated(np.int16)),
    "v_cvt_pk_u16_u32": operation("u32 u32 -> u32", _saturated(np.uint16)),
    "v_cvt_pknorm_i16_f32": operation("f32 f32 -> u32", _normalised(np.int16, -1.0, 32767.0)),
    "v_cvt_pknorm_u16_f32": operation("f32 f32 -> u32", _normalised(np.uint16, 0.0, 65535.0)),
    "v_cvt_pk_bf16_f32": operation(
        "f32 f32 -> u32", lambda a, b: bfloat16_bits(a) | bfloat16_bits(b) << U32(16)
    ),
    "v_cvt_f32_bf16": operation("u16 -> f32", lambda a: (a.astype(U32) << U32(16)).view(F32)),
}
"""Conversions of numbers that fill registers or their halves."""
