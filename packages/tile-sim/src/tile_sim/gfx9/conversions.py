"""Conversions between the types of lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tile_sim.gfx9.operation import Operation, operation

U32, F16, F32, F64 = np.uint32, np.float16, np.float32, np.float64


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
